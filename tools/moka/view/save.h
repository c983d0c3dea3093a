// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json.h"
#include "options.h"

namespace moka::cli {

/// Writes the model of `load` to request["path"] in the format of that path: .mlmodel and .mlpackage, also with
/// request["function"] alone and the sizes request["shapes"] (["x=1x3x64x64"]); .mlmodelc; .onnx. Returns {"written"},
/// the absolute path. A file that exists stays as it is. Throws UsageError, Exception.
Json save_model(const LoadOptions& load, const Json& request);

}  // namespace moka::cli
