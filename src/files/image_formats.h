// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "moka/feature.h"

/// One decoder per format, used by decode_image.
namespace moka::files {

Image decode_png(std::span<const std::byte> bytes, std::string_view name, int64_t most_pixels);
Image decode_jpeg(std::span<const std::byte> bytes, std::string_view name, int64_t most_pixels);
Image decode_webp(std::span<const std::byte> bytes, std::string_view name, int64_t most_pixels);

/// Throws malformed (no pixels), out_of_budget (more than most_pixels), unsupported (a side above 65536).
void require_size(int64_t width, int64_t height, int64_t most_pixels, std::string_view name);

/// Turns an image upright. `orientation` is EXIF's tag 0x0112, 1 to 8; other values change nothing.
Image upright(const Image& image, int orientation);

/// The EXIF orientation in an APP1 segment's body ("Exif\0\0", then TIFF); 1 when it has no valid one.
int exif_orientation(std::span<const std::byte> segment);

}  // namespace moka::files
