// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "moka/files.h"

namespace moka::files {

/// The format of raw video whose files end like this: "nv12", "i420", "yuv", "p010"; nullopt: it is not raw video.
std::optional<PixelBufferFormat> raw_format_of(std::string_view extension);
/// The first frame of raw video, which borrows the bytes. Throws invalid_argument (no size; no whole number of frames).
PixelBuffer decode_raw_frame(std::span<const std::byte> bytes, const RawFrame& frame, std::string_view extension);
/// The first frame of YUV4MPEG2 ("y4m") with 4:2:0 chroma of 8 bits, which borrows the bytes. `matrix`: the header has
/// none. Throws malformed, unsupported, out_of_budget.
PixelBuffer decode_y4m(std::span<const std::byte> bytes, YCbCrMatrix matrix, std::string_view name,
                       int64_t most_pixels);

}  // namespace moka::files
