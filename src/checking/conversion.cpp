// SPDX-License-Identifier: Apache-2.0
#include "moka/conversion.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "checking/text.h"

namespace moka {
namespace {

using Shape = std::vector<int64_t>;

[[noreturn]] void refuse(const std::string& message) { throw Exception(ErrorKind::invalid_argument, message); }

std::string_view pixel_name(PixelFormat format) {
  switch (format) {
    case PixelFormat::gray8: return "Grayscale";
    case PixelFormat::rgb8: return "RGB";
    case PixelFormat::rgba8: return "RGBA";
    case PixelFormat::bgra8: return "BGRA";
    case PixelFormat::gray_float32: return "Grayscale Float32";
    case PixelFormat::gray_float16: return "Grayscale Float16";
  }
  return "?";
}

Shape without_ones(Shape shape) {
  std::erase(shape, 1);
  return shape;
}

/// -1: too many.
int64_t product_of(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t d : shape)
    if (__builtin_mul_overflow(count, d, &count)) return -1;
  return count;
}

std::pair<double, double> integer_range(DataType type) {
  switch (type) {
    case DataType::int8: return {-128, 127};
    case DataType::uint8: return {0, 255};
    case DataType::int16: return {-32768, 32767};
    case DataType::uint16: return {0, 65535};
    case DataType::int32: return {-2147483648.0, 2147483647.0};
    case DataType::uint32: return {0, 4294967295.0};
    case DataType::boolean: return {0, 1};
    case DataType::uint64: return {0, 18446744073709549568.0};
    default: return {-9223372036854775808.0, 9223372036854774784.0};
  }
}

void check_integers(std::span<const double> numbers, DataType type) {
  if (type == DataType::float16 || type == DataType::float32 || type == DataType::float64) return;
  const auto [least, most] = integer_range(type);
  for (const double n : numbers)
    if (n != std::trunc(n) || n < least || n > most)
      refuse(cat("expected whole numbers of type ", to_string(type), ", got '", checking::number_text(n), "'"));
}

}  // namespace

std::string describe_in_full(const FeatureValue& value) {
  const auto* image = std::get_if<Image>(&value);
  if (image == nullptr) return describe(value);
  return cat("Image (", pixel_name(image->format), " ", image->width, " x ", image->height, ")");
}

std::optional<Shape> shape_for_count(const MultiArrayConstraint& constraint, int64_t count) {
  const bool fixed = constraint.ranges.empty() && constraint.enumerated.empty();
  if (!constraint.shape.empty() && product_of(constraint.shape) == count) return constraint.shape;
  for (const Shape& shape : constraint.enumerated)
    if (product_of(shape) == count) return shape;
  if (fixed) return constraint.shape.empty() ? std::optional(Shape{count}) : std::nullopt;
  // If one dimension may vary and all others are fixed, it takes the remaining elements.
  Shape shape;
  size_t open = constraint.ranges.size();
  int64_t others = 1;
  for (size_t i = 0; i < constraint.ranges.size(); ++i) {
    const SizeRange& range = constraint.ranges[i];
    shape.push_back(range.lower);
    if (range.lower == range.upper) {
      if (__builtin_mul_overflow(others, range.lower, &others)) return std::nullopt;
    } else if (open != constraint.ranges.size()) {
      return std::nullopt;
    } else {
      open = i;
    }
  }
  if (open == constraint.ranges.size() || others <= 0 || count % others) return std::nullopt;
  shape[open] = count / others;
  const SizeRange& range = constraint.ranges[open];
  if (shape[open] < range.lower || (range.upper >= 0 && shape[open] > range.upper)) return std::nullopt;
  return shape;
}

MultiArray array_of_numbers(const FeatureDescription& feature, std::span<const double> numbers,
                            std::optional<Shape> shape) {
  const auto count = static_cast<int64_t>(numbers.size());
  const MultiArrayConstraint& constraint = feature.array;
  const auto fitting = shape_for_count(constraint, count);
  if (!shape || shape->size() <= 1) {
    if (!fitting && (!shape || shape->empty() || constraint.shape.size() != shape->size()))
      refuse(cat("expected ", feature.formatted_type(), ", got ", checking::count_text(count, "number")));
    if (fitting) shape = fitting;
  } else if (fitting && without_ones(*shape) == without_ones(*fitting)) {
    shape = fitting;
  }
  check_integers(numbers, constraint.type);
  MultiArray wide(DataType::float64, *shape);
  std::copy(numbers.begin(), numbers.end(), wide.as<double>().begin());
  return wide.converted(constraint.type);
}

Image image_of_array(const FeatureDescription& feature, const MultiArray& array) {
  const bool half = feature.image.color == ColorSpace::grayscale_float16;
  const bool gray = half || feature.image.color == ColorSpace::grayscale;
  Shape shape = array.shape();
  while (shape.size() > (gray ? 2u : 3u) && shape.front() == 1) shape.erase(shape.begin());
  if (gray && shape.size() == 3 && shape.back() == 1) shape.pop_back();
  const auto is_colors = [](int64_t d) { return d == 3 || d == 4; };
  const bool planes = !gray && shape.size() == 3 && is_colors(shape[0]) &&
                      (!is_colors(shape[2]) || (shape[1] == feature.image.height && shape[2] == feature.image.width));
  if (gray ? shape.size() != 2 : shape.size() != 3 || !(planes || is_colors(shape[2])))
    refuse(cat("expected an array of ", gray ? "height x width" : "height x width x 3 or 3 x height x width", " for ",
               feature.formatted_type(), ", got ", to_string(array.type()), " of shape ",
               array.shape().empty() ? "one number" : checking::shape_text(array.shape())));
  const int64_t height = shape[planes ? 1 : 0], width = shape[planes ? 2 : 1];
  const int64_t colors = gray ? 1 : shape[planes ? 0 : 2];
  const MultiArray doubles = array.converted(DataType::float64);
  const auto numbers = doubles.as<double>();
  Image image(width, height, half ? PixelFormat::gray_float32 : gray ? PixelFormat::gray8 : PixelFormat::rgb8);
  const auto at = [&](int64_t x, int64_t y, int64_t c) {
    return numbers[static_cast<size_t>(planes ? (c * height + y) * width + x : (y * width + x) * colors + c)];
  };
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      if (half) {
        reinterpret_cast<float*>(image.pixels.get() + y * image.row_bytes)[x] = static_cast<float>(at(x, y, 0));
        continue;
      }
      for (int64_t c = 0; c < (gray ? 1 : 3); ++c) {
        const double v = at(x, y, c);
        if (!(v >= 0 && v <= 255 && v == std::trunc(v)))
          refuse(cat("expected whole numbers from 0 to 255, got ", checking::number_text(v)));
        image.pixels.get()[y * image.row_bytes + (gray ? x : x * 3 + c)] = static_cast<uint8_t>(v);
      }
    }
  return image;
}

}  // namespace moka
