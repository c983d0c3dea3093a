// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "moka/pixel_buffer.h"
#include "pictures/frame.h"
#include "pictures/placement.h"

namespace moka::boundary {

/// What the library calls a buffer; it points to the same samples. Error invalid_argument, as that of PixelBuffer's
/// constructors.
Result<pictures::Frame> frame_of(const PixelBuffer& buffer);
/// Where its part goes in a picture of width x height. Error invalid_argument: a region that does not lie in the
/// buffer.
Result<pictures::Placement> placement_of(const PixelBuffer& buffer, int64_t width, int64_t height);
/// "nv12 1920 x 1080".
std::string text_of(const PixelBuffer& buffer);

}  // namespace moka::boundary
