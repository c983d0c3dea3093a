// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "format/model_file.h"
#include "import/description.h"

namespace moka::import {

/// The inputs of `model` that serve only as thresholds of its non-maximum suppressions, with the model's own values;
/// NaN where the suppressions have different values. Such an input may be missing whatever its description says. It
/// need not be described if a pipeline around the model describes it: exporters declare thresholds only on the
/// pipeline, and not as optional.
std::map<std::string, double> thresholds(const proto::Model& model, const format::ModelFile& file);

/// Makes the inputs that are thresholds optional and records their defaults.
void mark_thresholds(const proto::Model& model, const format::ModelFile& file, FunctionDescription& function);

}  // namespace moka::import
