// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "moka/verify.h"

namespace moka::checking {

/// The numbers of a value in row-major order, images as red, green and blue planes.
struct Numbers {
  std::vector<int64_t> shape;
  std::vector<double> values;
};
/// False for texts, whole numbers and sequences, which are equal or not.
bool has_numbers(const FeatureValue& value);
/// Empty for values without numbers.
Numbers numbers_of(const FeatureValue& value);

/// Adds one prediction's output. `classes`: the value holds a number for each class.
void add_error(OutputError& to, const FeatureValue& value, const FeatureValue& reference, bool classes);

}  // namespace moka::checking
