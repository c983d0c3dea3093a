// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "import/importer.h"

namespace moka::update {

/// Divides a function with parameters and one output into a front, which computes what depends on no parameter, and a
/// head, the rest. Returns what the head reads of the front, or of the function's inputs. What follows from the sizes
/// of values alone, or from nothing, is in the head.
std::vector<ir::Value*> between(const ir::Function& function);

/// Makes the outputs of the model's only function those values that its head reads, "between/0" and so on.
/// Inputs that only the head reads, or nothing, are gone.
Status keep_front(import::ImportedModel& model);
/// Makes the inputs of the model's only function those values, under the same names. Its output stays. A first
/// dimension that was 1 becomes the number of examples, in reshapes too.
Status keep_head(import::ImportedModel& model);

}  // namespace moka::update
