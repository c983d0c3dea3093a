// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/picture.h"

/// One decoder per format, used by parse_picture.
namespace moka::io::formats {

Picture parse_png(std::span<const std::byte> bytes, std::string_view name, size_t most_pixels);
Picture parse_jpeg(std::span<const std::byte> bytes, std::string_view name, size_t most_pixels);
Picture parse_webp(std::span<const std::byte> bytes, std::string_view name, size_t most_pixels);

/// Throws IoError unless 0 < width * height <= most_pixels.
void require_size(size_t width, size_t height, size_t most_pixels, std::string_view name);

/// Turns a picture upright. `orientation` is EXIF's tag 0x0112, 1 to 8; other values change nothing.
Picture upright(Picture picture, int orientation);

/// The EXIF orientation in an APP1 segment's body ("Exif\0\0", then TIFF); 1 when it has no valid one.
int exif_orientation(std::span<const std::byte> segment);

}  // namespace moka::io::formats
