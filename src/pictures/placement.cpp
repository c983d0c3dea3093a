// SPDX-License-Identifier: Apache-2.0
#include "pictures/placement.h"

#include <cmath>

namespace moka::pictures {

Result<Placement> place(int64_t source_width, int64_t source_height, int64_t width, int64_t height, Fit fit,
                        const Region& region) {
  if (source_width < 1 || source_height < 1 || width < 1 || height < 1)
    return fail(ErrorCode::invalid_argument, "resize: expected sizes above 0, got ", source_width, " x ", source_height,
                " to ", width, " x ", height);
  constexpr double kRoundoff = 1e-9;
  if (!(region.x >= 0 && region.y >= 0 && region.width > 0 && region.height > 0 &&
        region.x + region.width <= 1 + kRoundoff && region.y + region.height <= 1 + kRoundoff))
    return fail(ErrorCode::invalid_argument, "region: expected a part of the image in fractions from 0 to 1, got (",
                region.x, ", ", region.y, ") with ", region.width, " x ", region.height);
  const double sx = region.x * static_cast<double>(source_width), sy = region.y * static_cast<double>(source_height);
  const double sw = region.width * static_cast<double>(source_width);
  const double sh = region.height * static_cast<double>(source_height);
  const double across = static_cast<double>(width) / sw, down = static_cast<double>(height) / sh;
  Placement p{sx, sy, sw, sh, 0, 0, width, height};
  if (fit == Fit::scale_fit) {
    const double scale = std::min(across, down);
    p.width = std::clamp<int64_t>(std::lround(sw * scale), 1, width);
    p.height = std::clamp<int64_t>(std::lround(sh * scale), 1, height);
    p.x = (width - p.width) / 2;
    p.y = (height - p.height) / 2;
  } else if (fit == Fit::center_crop) {
    const double scale = std::max(across, down);
    p.source_width = std::min(sw, static_cast<double>(width) / scale);
    p.source_height = std::min(sh, static_cast<double>(height) / scale);
    p.source_x += (sw - p.source_width) / 2;
    p.source_y += (sh - p.source_height) / 2;
  }
  return p;
}

int64_t part_of_side(double fraction, int64_t side) {
  // A region that is not a part of the picture is refused later.
  const double part = std::round(fraction * static_cast<double>(side));
  return part >= 1 && part <= static_cast<double>(side) ? static_cast<int64_t>(part) : 1;
}

}  // namespace moka::pictures
