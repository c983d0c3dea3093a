// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace moka::compress {

/// The least and the greatest element of a value.
struct ValueRange {
  double least = 0, greatest = 0;
  bool is_finite() const { return std::isfinite(least) && std::isfinite(greatest); }
};
/// By the names of values in the program.
using ValueRanges = std::map<std::string, ValueRange, std::less<>>;

struct Activations {
  bool symmetric = true, is_signed = true;
  /// Whether an operation keeps its inputs as they are, by its name and its type. Null: none does.
  std::function<bool(std::string_view name, std::string_view type)> keeps;
};

}  // namespace moka::compress
