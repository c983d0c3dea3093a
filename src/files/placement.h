// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "moka/files.h"

namespace moka::files {

/// The part of an image, and its place in the result.
struct Placement {
  double source_x = 0, source_y = 0, source_width = 0, source_height = 0;
  int64_t x = 0, y = 0, width = 0, height = 0;
};

/// Throws invalid_argument for a side below 1 and for a region that does not lie in the image.
Placement place(int64_t source_width, int64_t source_height, int64_t width, int64_t height, ImageFit fit,
                const ImageRegion& region = {});

}  // namespace moka::files
