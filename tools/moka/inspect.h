#pragma once

#include <string>

#include "json.h"
#include "moka/model_structure.h"
#include "options.h"

/// `moka inspect`: shows the content of a file (inspect_text.cpp as text, inspect_json.cpp as JSON), then whether it
/// runs.
namespace moka::cli {

struct InspectOptions {
  LoadOptions load;
  bool mil = false, optimized = false, layers = false, weights = false, json = false;
};

/// Everything except whether Moka runs the model. `function`: the function to show.
std::string inspect_text(const ModelOutline& outline, const FunctionDescription& function,
                         const InspectOptions& options);
Json inspect_json(const ModelOutline& outline, const FunctionDescription& function, const InspectOptions& options);

}  // namespace moka::cli
