// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/pixels.h"
#include "files/error.h"
#include "files/file.h"
#include "files/image_formats.h"
#include "files/pixels.h"
#include "moka/files.h"

namespace moka {
namespace files {
namespace {

bool starts_with(std::span<const std::byte> bytes, std::string_view magic, size_t at = 0) {
  if (bytes.size() < at + magic.size()) return false;
  return text_of(bytes).substr(at, magic.size()) == magic;
}

}  // namespace

void require_pixels(const Image& image) {
  if (image.width < 1 || image.height < 1 || !image.pixels)
    refuse(ErrorKind::invalid_argument, "image: expected pixels, got ", image.width, " x ", image.height);
}

void require_size(int64_t width, int64_t height, int64_t most_pixels, std::string_view name) {
  if (width < 1 || height < 1) damaged(name, "expected a picture with pixels, got ", width, " x ", height);
  if (width > most_pixels / height)
    refuse(ErrorKind::out_of_budget, name, ": expected at most ", most_pixels, " pixels, got ", width, " x ", height);
  constexpr int64_t kLongest = 65536;
  if (width > kLongest || height > kLongest)
    refuse(ErrorKind::unsupported, name, ": expected sides of at most ", kLongest, " pixels, got ", width, " x ",
           height);
}

Image upright(const Image& image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool transposed = orientation >= 5;
  Image result(transposed ? image.height : image.width, transposed ? image.width : image.height, image.format);
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const size_t size = bytes_per_pixel(image.format);
  for (int64_t y = 0; y < result.height; ++y) {
    for (int64_t x = 0; x < result.width; ++x) {
      int64_t from_x = transposed ? y : x, from_y = transposed ? x : y;
      if (flip_x) from_x = image.width - 1 - from_x;
      if (flip_y) from_y = image.height - 1 - from_y;
      std::copy_n(pixel_at(image, from_x, from_y), size, pixel_at(result, x, y));
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

}  // namespace files

Image decode_image(std::span<const std::byte> bytes, std::string_view name, int64_t most_pixels) {
  if (files::starts_with(bytes, "\x89PNG\r\n\x1a\n")) return files::decode_png(bytes, name, most_pixels);
  if (files::starts_with(bytes, "\xff\xd8\xff")) return files::decode_jpeg(bytes, name, most_pixels);
  if (files::starts_with(bytes, "RIFF") && files::starts_with(bytes, "WEBP", 8))
    return files::decode_webp(bytes, name, most_pixels);
  files::damaged(name, "expected a PNG, JPEG or WebP picture, got neither");
}

Image read_image(const std::filesystem::path& path, int64_t most_pixels) {
  return decode_image(files::read_file(path), path.string(), most_pixels);
}

}  // namespace moka
