// SPDX-License-Identifier: Apache-2.0
#include "io/picture.h"

#include <algorithm>

#include "io/io_error.h"
#include "io/picture_formats.h"

namespace moka::io {
namespace {

bool starts_with(std::span<const std::byte> bytes, std::string_view magic, size_t at = 0) {
  if (bytes.size() < at + magic.size()) return false;
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + at, magic.size()) == magic;
}

uint8_t over_black(int value, int alpha) { return static_cast<uint8_t>((value * alpha + 127) / 255); }

uint8_t luma(int r, int g, int b) { return static_cast<uint8_t>((299 * r + 587 * g + 114 * b + 500) / 1000); }

}  // namespace

Picture Picture::blank(size_t width, size_t height, size_t channels) {
  size_t size;
  if (__builtin_mul_overflow(width, height, &size) || __builtin_mul_overflow(size, channels, &size)) {
    fail("picture", "a size of ", width, " x ", height, " overflows");
  }
  Picture picture{width, height, channels, std::vector<uint8_t>(size)};
  if (channels == 4) {
    for (size_t i = 3; i < size; i += 4) picture.pixels[i] = 255;
  }
  return picture;
}

Picture parse_picture(std::span<const std::byte> bytes, std::string_view name, size_t most_pixels) {
  if (starts_with(bytes, "\x89PNG\r\n\x1a\n")) return formats::parse_png(bytes, name, most_pixels);
  if (starts_with(bytes, "\xff\xd8\xff")) return formats::parse_jpeg(bytes, name, most_pixels);
  if (starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8)) return formats::parse_webp(bytes, name, most_pixels);
  fail(name, "expected a PNG, JPEG or WebP picture, got neither");
}

Picture read_picture(const std::filesystem::path& path, size_t most_pixels) {
  return parse_picture(read_file(path), path.string(), most_pixels);
}

Picture with_channels(const Picture& picture, size_t channels) {
  if (channels != 1 && channels != 3 && channels != 4) fail("picture", "expected 1, 3 or 4 channels, got ", channels);
  if (picture.channels == channels) return picture;
  Picture result = Picture::blank(picture.width, picture.height, channels);
  const size_t count = picture.width * picture.height;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* from = &picture.pixels[i * picture.channels];
    uint8_t* to = &result.pixels[i * channels];
    uint8_t rgb[3];
    for (size_t c = 0; c < 3; ++c) {
      rgb[c] = from[picture.channels == 1 ? 0 : c];
      if (picture.channels == 4) rgb[c] = over_black(rgb[c], from[3]);
    }
    if (channels == 1)
      *to = luma(rgb[0], rgb[1], rgb[2]);
    else
      std::copy_n(rgb, 3, to);
  }
  return result;
}

namespace formats {

void require_size(size_t width, size_t height, size_t most_pixels, std::string_view name) {
  if (width == 0 || height == 0) fail(name, "expected a picture with pixels, got ", width, " x ", height);
  if (width > most_pixels / height) {
    fail(name, "expected at most ", most_pixels, " pixels, got ", width, " x ", height);
  }
}

Picture upright(Picture picture, int orientation) {
  if (orientation < 2 || orientation > 8) return picture;
  const bool transposed = orientation >= 5;
  Picture result{transposed ? picture.height : picture.width, transposed ? picture.width : picture.height,
                 picture.channels, std::vector<uint8_t>(picture.pixels.size())};
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  for (size_t y = 0; y < result.height; ++y) {
    for (size_t x = 0; x < result.width; ++x) {
      size_t from_x = transposed ? y : x, from_y = transposed ? x : y;
      if (flip_x) from_x = picture.width - 1 - from_x;
      if (flip_y) from_y = picture.height - 1 - from_y;
      std::copy_n(picture.at(from_x, from_y), picture.channels, result.at(x, y));
    }
  }
  return result;
}

int exif_orientation(std::span<const std::byte> segment) {
  using namespace std::string_view_literals;
  if (!starts_with(segment, "Exif\0\0"sv)) return 1;
  const auto tiff = segment.subspan(6);
  const bool big = starts_with(tiff, "MM");
  if (!big && !starts_with(tiff, "II")) return 1;
  const auto read = [&](size_t at, size_t size) -> size_t {
    if (at > tiff.size() || size > tiff.size() - at) return 0;
    size_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= static_cast<size_t>(tiff[at + i]) << (8 * (big ? size - 1 - i : i));
    return value;
  };
  const size_t directory = read(4, 4), entries = read(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * 12;
    if (read(entry, 2) != 0x0112) continue;
    const size_t value = read(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace formats
}  // namespace moka::io
