// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json.h"
#include "moka/inspection.h"
#include "options.h"
#include "weight_statistics.h"

/// `moka inspect`: shows the content of a file (inspect_text.cpp as text, inspect_json.cpp as JSON), then whether it
/// runs.
namespace moka::cli {

struct InspectOptions {
  LoadOptions load;
  bool mil = false, optimized = false, layers = false, weights = false, json = false;
};

/// Everything except whether Moka runs the model. `function`: the function to show.
std::string inspect_text(const Inspection& inspection, const FunctionDescription& function,
                         const InspectOptions& options);
/// The weights of a function by type, and each with its statistics (inspect_weights.cpp). Empty: there are none.
std::string weights_text(const ModelStructure& structure, const std::string& function);
std::string weight_list_text(const ModelStructure& structure, const std::string& function,
                             const StatisticsReader& statistics);
/// What an updatable model learns (inspect_update.cpp). Empty for other models.
std::string update_text(const ModelDescription& description);
Json update_json(const UpdateDescription& update);
Json inspect_json(const Inspection& inspection, const FunctionDescription& function, const InspectOptions& options);

}  // namespace moka::cli
