#pragma once

#include <map>
#include <string>

#include "format/model_file.h"
#include "import/description.h"

namespace moka::import {

/// The inputs of `model` that serve as thresholds of its non-maximum suppressions and for nothing else, with the
/// model's own values; NaN where its suppressions have different ones. Such an input may be missing whatever its
/// description says, and need not be described where a pipeline around the model describes it: exporters declare
/// thresholds on the pipeline only, and not as optional.
std::map<std::string, double> thresholds(const proto::Model& model, const format::ModelFile& file);

/// Makes the described inputs that are thresholds optional and notes their defaults.
void mark_thresholds(const proto::Model& model, const format::ModelFile& file, FunctionDescription& function);

}  // namespace moka::import
