// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "moka/description.h"
#include "moka/feature.h"

namespace moka::cli {

/// The numbers of an input.
struct NumberRange {
  std::string name;
  double low = 0, high = 1;
};

/// Reads the value "name=low:high" of --range. Throws UsageError.
NumberRange parse_range(const std::string& text);

/// Draws the numbers of arrays anew, in the ranges "name=low:high". Throws UsageError.
void spread(Features& inputs, const std::vector<std::string>& ranges, const FunctionDescription& function,
            uint64_t seed);

}  // namespace moka::cli
