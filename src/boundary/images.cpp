// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "base/pixels.h"
#include "kernel/pixels.h"
#include "moka/feature.h"

namespace moka {

namespace {

float gray_at(const uint8_t* pixel, PixelFormat format) {
  if (format == PixelFormat::gray8) return *pixel;
  uint16_t bits = 0;
  float number = 0;
  if (format == PixelFormat::gray_float32)
    std::memcpy(&number, pixel, sizeof number);
  else
    std::memcpy(&bits, pixel, sizeof bits);
  return format == PixelFormat::gray_float32 ? number : half::to_float(bits);
}

void put_gray(uint8_t* pixel, PixelFormat format, float number) {
  const uint16_t bits = half::from_float(number);
  if (format == PixelFormat::gray8)
    float_to_byte(&number, pixel, 1);
  else if (format == PixelFormat::gray_float32)
    std::memcpy(pixel, &number, sizeof number);
  else
    std::memcpy(pixel, &bits, sizeof bits);
}

uint8_t over_black(int value, int alpha) { return static_cast<uint8_t>((value * alpha + 127) / 255); }

uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
}

/// A pixel as red, green, blue and alpha.
void take_pixel(const uint8_t* from, PixelFormat format, uint8_t* rgba) {
  rgba[3] = 255;
  switch (format) {
    case PixelFormat::gray8: std::fill_n(rgba, 3, from[0]); break;
    case PixelFormat::rgb8: std::copy_n(from, 3, rgba); break;
    case PixelFormat::rgba8: std::copy_n(from, 4, rgba); break;
    case PixelFormat::bgra8:
      for (int c = 0; c < 4; ++c) rgba[c] = from[c == 3 ? 3 : 2 - c];
      break;
    case PixelFormat::gray_float32:
    case PixelFormat::gray_float16: {
      const float value = gray_at(from, format);
      float_to_byte(&value, rgba, 1);
      rgba[1] = rgba[2] = rgba[0];
      break;
    }
  }
}

void put_pixel(uint8_t* rgba, PixelFormat format, uint8_t* to) {
  if (format == PixelFormat::rgba8) {
    std::copy_n(rgba, 4, to);
    return;
  }
  if (format == PixelFormat::bgra8) {
    for (int c = 0; c < 4; ++c) to[c == 3 ? 3 : 2 - c] = rgba[c];
    return;
  }
  for (int c = 0; c < 3; ++c) rgba[c] = over_black(rgba[c], rgba[3]);
  if (format == PixelFormat::rgb8)
    std::copy_n(rgba, 3, to);
  else
    put_gray(to, format, luma(rgba));
}

bool is_gray(PixelFormat format) { return kernel::is_gray(static_cast<kernel::PixelFormat>(format)); }

}  // namespace

Image converted(const Image& image, PixelFormat format) {
  if (image.pixels == nullptr) throw Exception(ErrorKind::invalid_argument, "image: expected pixels, got none");
  if (image.format == format) return image;
  Image result(image.width, image.height, format);
  const size_t from_size = bytes_per_pixel(image.format), to_size = bytes_per_pixel(format);
  const bool is_number = is_gray(image.format) && is_gray(format);
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* from = image.pixels.get() + y * image.row_bytes;
    uint8_t* to = result.pixels.get() + y * result.row_bytes;
    for (int64_t x = 0; x < image.width; ++x, from += from_size, to += to_size) {
      if (is_number) {
        put_gray(to, format, gray_at(from, image.format));
        continue;
      }
      uint8_t rgba[4];
      take_pixel(from, image.format, rgba);
      put_pixel(rgba, format, to);
    }
  }
  return result;
}

}  // namespace moka
