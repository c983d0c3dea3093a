// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "moka/description.h"
#include "moka/feature.h"

namespace moka {

/// One choice of the sizes that a function's inputs allow.
struct ShapeChoice {
  std::string name;              ///< "x 1 x 3 x 64, mask 1 x 64"
  FunctionDescription function;  ///< the function with this choice as its default shapes
};

/// The default shapes. `all` adds every enumerated shape and the corners of ranges, first for one input at a time, then
/// for all inputs together. A range without an upper limit ends at twice the default size.
MOKA_EXPORT std::vector<ShapeChoice> shape_choices(const FunctionDescription& function, bool all);

/// Replaces the elements of arrays by random numbers: floats in [low, high), integers in [low, high]. `ranges`: by the
/// input's name; ranges of inputs that are not arrays are ignored. The same seed gives the same numbers. Error
/// invalid_argument: no integer lies in the range.
MOKA_EXPORT Features inputs_within(Features inputs, const std::map<std::string, std::pair<double, double>>& ranges,
                                   uint64_t seed);

}  // namespace moka
