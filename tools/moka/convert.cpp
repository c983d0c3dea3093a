// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <charconv>
#include <cmath>

namespace moka::cli {

MultiArray numbers_of(const Image& image) {
  const DataType type = image.format == PixelFormat::gray_float16 ? DataType::float16 : DataType::float32;
  return MultiArray(image.pixels.get(), type, {image.height, image.width},
                    {image.row_bytes / static_cast<int64_t>(size_of(type)), 1}, image.pixels);
}

double shortest(double value, DataType type) {
  if (type != DataType::float32 && type != DataType::float16) return value;
  if (!std::isfinite(value)) return value;
  char text[48];
  char* end = text;
  if (type == DataType::float32) {
    end = std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr;
  } else {
    // Adjacent float16 numbers have a relative distance of at least 2^-10, so five digits distinguish them.
    end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 5).ptr;
  }
  double out = value;
  std::from_chars(text, end, out);
  return out;
}

}  // namespace moka::cli
