// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "io/picture.h"

namespace moka::io {

/// Filters. Their support grows when shrinking, so nothing aliases.
enum class Filter { triangle, lanczos3 };

/// How a picture fills a given size. The terms are those of Apple's Vision.
enum class Fit {
  scale_fill,   ///< stretched to the whole size
  scale_fit,    ///< whole picture, aspect ratio kept, centered on black
  center_crop,  ///< fills the size, aspect ratio kept, edges cut off evenly
};

/// "scaleFill", "scaleFit", "centerCrop"; throws IoError for anything else.
Fit parse_fit(std::string_view text);

/// The part of the picture, and its place in the result.
struct Placement {
  double source_x = 0, source_y = 0, source_width = 0, source_height = 0;
  size_t x = 0, y = 0, width = 0, height = 0;
};

/// Throws IoError when a side is 0.
Placement place(size_t source_width, size_t source_height, size_t width, size_t height, Fit fit);

/// Separable resampling with pixel centers at half coordinates, edges cut off and renormalized, and premultiplied
/// alpha. Rounds to 8 bits once.
Picture resize(const Picture& picture, size_t width, size_t height, Filter filter = Filter::triangle);

/// A picture of exactly width x height, same channels.
Picture fit(const Picture& picture, size_t width, size_t height, Fit fit, Filter filter = Filter::triangle);

}  // namespace moka::io
