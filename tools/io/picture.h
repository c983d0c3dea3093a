#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "io/file.h"

namespace moka::io {

/// Pixels row by row from the top, 8 bits a channel: 1 = gray, 3 = red, green, blue, 4 = with straight alpha.
struct Picture {
  size_t width = 0, height = 0, channels = 4;
  std::vector<uint8_t> pixels;

  uint8_t* at(size_t x, size_t y) { return &pixels[(y * width + x) * channels]; }
  const uint8_t* at(size_t x, size_t y) const { return &pixels[(y * width + x) * channels]; }

  /// Black, opaque where there is alpha.
  static Picture blank(size_t width, size_t height, size_t channels);
};

/// The most pixels a picture may have where the caller names no other limit.
constexpr size_t kMostPixels = size_t{1} << 27;

/// PNG, JPEG or WebP, told apart by their first bytes. Gray files give 1 channel, all others 4. 16-bit samples are
/// rounded to 8, colour profiles and gamma are ignored, JPEGs are turned upright by their EXIF orientation.
/// Throws IoError for damaged or cut-off files and for more than `most_pixels` pixels.
Picture parse_picture(std::span<const std::byte> bytes, std::string_view name, size_t most_pixels = kMostPixels);
Picture read_picture(const std::filesystem::path& path, size_t most_pixels = kMostPixels);

/// Converts to 1, 3 or 4 channels. Gray is 0.299 R + 0.587 G + 0.114 B; dropped alpha is composed over black.
Picture with_channels(const Picture& picture, size_t channels);

/// PNG of 1, 3 or 4 channels.
Bytes encode_png(const Picture& picture);
void write_png(const std::filesystem::path& path, const Picture& picture);

}  // namespace moka::io
