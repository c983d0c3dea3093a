// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.h"

namespace moka::pictures {

/// In the order of moka::ImageFit.
enum class Fit : uint8_t { scale_fill, scale_fit, center_crop };

/// In fractions of the picture.
struct Region {
  double x = 0, y = 0, width = 1, height = 1;
  bool operator==(const Region&) const = default;
};

/// The part of a picture, and its place in the result.
struct Placement {
  double source_x = 0, source_y = 0, source_width = 0, source_height = 0;
  int64_t x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Placement&) const = default;
};

/// Errors: a side below 1, a region that does not lie in the picture.
Result<Placement> place(int64_t source_width, int64_t source_height, int64_t width, int64_t height, Fit fit,
                        const Region& region = {});

/// The size (width, height) in which a constraint takes a picture: one of the enumerated sizes, or the nearest one
/// within the ranges.
template <class Constraint>
std::pair<int64_t, int64_t> nearest_size(const Constraint& constraint, int64_t width, int64_t height) {
  for (const auto& size : constraint.enumerated)
    if (size == std::pair(width, height)) return size;
  if (!constraint.enumerated.empty()) return {constraint.width, constraint.height};
  const auto within = [](int64_t value, const auto& range, int64_t otherwise) {
    if (!range) return otherwise;
    return std::max(range->lower, range->upper < 0 ? value : std::min(value, range->upper));
  };
  return {within(width, constraint.width_range, constraint.width),
          within(height, constraint.height_range, constraint.height)};
}

/// The side of a part of a picture, in pixels.
int64_t part_of_side(double fraction, int64_t side);

}  // namespace moka::pictures
