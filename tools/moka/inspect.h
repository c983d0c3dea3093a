#pragma once

#include <string>

#include "json.h"
#include "moka/model_structure.h"
#include "options.h"

/// `moka inspect`: what a file says (inspect_text.cpp for people, inspect_json.cpp for machines), then whether it runs.
namespace moka::cli {

struct InspectOptions {
  LoadOptions load;
  bool mil = false, optimized = false, layers = false, weights = false, json = false;
};

/// Everything but whether Moka runs the model. `function`: the one to show.
std::string inspect_text(const ModelOutline& outline, const FunctionDescription& function,
                         const InspectOptions& options);
Json inspect_json(const ModelOutline& outline, const FunctionDescription& function, const InspectOptions& options);

}  // namespace moka::cli
