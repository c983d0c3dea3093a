// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "moka/files.h"

namespace moka::test {

using Pixels = std::vector<uint8_t>;

/// The bytes of the pixels, row by row.
inline Pixels pixels_of(const Image& image) {
  Pixels out;
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* row = image.pixels.get() + y * image.row_bytes;
    out.insert(out.end(), row, row + image.width * static_cast<int64_t>(bytes_per_pixel(image.format)));
  }
  return out;
}

inline Image image_of(int64_t width, int64_t height, PixelFormat format, const Pixels& pixels) {
  Image out(width, height, format);
  std::copy(pixels.begin(), pixels.end(), out.pixels.get());
  return out;
}

/// The kind and message of the Exception that `act` throws.
inline std::pair<ErrorKind, std::string> failure_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Exception& e) {
    return {e.kind(), e.what()};
  }
  return {ErrorKind::internal, "no Exception"};
}

}  // namespace moka::test
