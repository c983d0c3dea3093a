// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "moka/feature.h"

namespace moka::files {

inline uint8_t* pixel_at(Image& image, int64_t x, int64_t y) {
  return image.pixels.get() + y * image.row_bytes + x * static_cast<int64_t>(bytes_per_pixel(image.format));
}
inline const uint8_t* pixel_at(const Image& image, int64_t x, int64_t y) {
  return image.pixels.get() + y * image.row_bytes + x * static_cast<int64_t>(bytes_per_pixel(image.format));
}
inline uint8_t* row_of(Image& image, int64_t y) { return image.pixels.get() + y * image.row_bytes; }
inline const uint8_t* row_of(const Image& image, int64_t y) { return image.pixels.get() + y * image.row_bytes; }

/// Throws invalid_argument for an image without pixels.
void require_pixels(const Image& image);

}  // namespace moka::files
