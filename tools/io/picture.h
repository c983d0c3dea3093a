// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace moka::io {

/// Pixels row by row from the top, 8 bits per channel. Channels: 1 = gray, 3 = red, green, blue, 4 = with straight
/// alpha.
struct Picture {
  size_t width = 0, height = 0, channels = 4;
  std::vector<uint8_t> pixels;

  uint8_t* at(size_t x, size_t y) { return &pixels[(y * width + x) * channels]; }
  const uint8_t* at(size_t x, size_t y) const { return &pixels[(y * width + x) * channels]; }

  /// A black picture, opaque if it has alpha.
  static Picture blank(size_t width, size_t height, size_t channels);
};

/// The default limit on the pixels of a picture.
constexpr size_t kMostPixels = size_t{1} << 27;

/// Decodes PNG, JPEG or WebP, recognized by their first bytes. Gray files give 1 channel, all others 4. Rounds 16-bit
/// samples to 8 bits, ignores color profiles and gamma, and turns JPEGs upright by their EXIF orientation. Throws
/// IoError for damaged or truncated files and for more than `most_pixels` pixels.
Picture parse_picture(std::span<const std::byte> bytes, std::string_view name, size_t most_pixels = kMostPixels);
Picture read_picture(const std::filesystem::path& path, size_t most_pixels = kMostPixels);

/// Converts to 1, 3 or 4 channels. Gray is 0.299 R + 0.587 G + 0.114 B. Dropping alpha composes over black.
Picture with_channels(const Picture& picture, size_t channels);

/// Encodes 1, 3 or 4 channels as PNG.
Bytes encode_png(const Picture& picture);
void write_png(const std::filesystem::path& path, const Picture& picture);

}  // namespace moka::io
