// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "moka/verify.h"

namespace moka::cli {

/// The numbers of an input.
struct NumberRange {
  std::string name;
  double low = 0, high = 1;
};

/// Reads the value "name=low:high" of --range. Throws UsageError.
NumberRange parse_range(const std::string& text);

/// The ranges that --range names as "name=low:high", of array inputs. Throws UsageError.
NumberRanges ranges_of(const std::vector<std::string>& texts, const FunctionDescription& function);

}  // namespace moka::cli
