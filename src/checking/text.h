// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// How texts about comparisons write numbers.
namespace moka::checking {

/// Five significant digits; whole numbers below 10^9 in full; "nan", "inf".
std::string number_text(double value);
/// One digit after the point.
std::string rounded_text(double value);
/// "1 element", "1,234 elements".
std::string count_text(int64_t count, std::string_view word);
/// "1 x 3 x 8"; "scalar" when empty.
std::string shape_text(std::span<const int64_t> shape);

}  // namespace moka::checking
