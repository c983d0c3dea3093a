// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "files/error.h"
#include "files/pixels.h"
#include "files/placement.h"
#include "moka/files.h"

namespace moka {
namespace files {
namespace {

struct Taps {
  size_t first = 0;
  std::vector<float> weights;
};

/// The source pixels that are mixed into each target pixel. The source box is [start, start + length).
std::vector<Taps> taps_for(size_t source, double start, double length, size_t target) {
  const double step = length / static_cast<double>(target);
  const double stretch = std::max(1.0, step);
  std::vector<Taps> result(target);
  for (size_t i = 0; i < target; ++i) {
    const double center = start + (static_cast<double>(i) + 0.5) * step;
    const auto limit = static_cast<int64_t>(source);
    const int64_t first = std::clamp<int64_t>(static_cast<int64_t>(std::floor(center - stretch)), 0, limit - 1);
    const int64_t last = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(center + stretch)), first + 1, limit);
    result[i].first = static_cast<size_t>(first);
    std::vector<double> weights;
    double sum = 0;
    for (int64_t s = first; s < last; ++s) {
      weights.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(s) + 0.5 - center) / stretch)));
      sum += weights.back();
    }
    for (double w : weights) result[i].weights.push_back(static_cast<float>(w / sum));
  }
  return result;
}

typedef uint8_t Bytes4 __attribute__((vector_size(4), aligned(1), may_alias));
typedef float Floats4 __attribute__((vector_size(16), aligned(4), may_alias));

/// A row of the source as floats; with four channels, colors are multiplied by alpha.
void widen(const uint8_t* from, size_t pixels, size_t channels, float* to) {
  const size_t n = pixels * channels;
  constexpr Floats4 kColor = {1, 1, 1, 0}, kAlpha = 1 - kColor;
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    Floats4 v = __builtin_convertvector(*reinterpret_cast<const Bytes4*>(from + i), Floats4);
    if (channels == 4) v *= __builtin_shufflevector(v, v, 3, 3, 3, 3) * (kColor / 255) + kAlpha;
    *reinterpret_cast<Floats4*>(to + i) = v;
  }
  for (; i < n; ++i) to[i] = from[i];
}

void add_scaled(const float* from, float weight, size_t n, float* to) {
  size_t i = 0;
  for (; i + 4 <= n; i += 4)
    *reinterpret_cast<Floats4*>(to + i) += *reinterpret_cast<const Floats4*>(from + i) * weight;
  for (; i < n; ++i) to[i] += from[i] * weight;
}

uint8_t rounded(float value, uint8_t) { return static_cast<uint8_t>(std::clamp(std::lround(value), 0l, 255l)); }
float rounded(float value, float) { return value; }

/// A row of the result, from a row of floats as wide as the source.
template <class T, size_t n>
void squeeze(const std::vector<float>& line, const std::vector<Taps>& columns, uint8_t* to) {
  auto* value = reinterpret_cast<T*>(to);
  for (const Taps& column : columns) {
    std::array<float, n> mixed{};
    const float* from = &line[column.first * n];
    for (const float weight : column.weights)
      for (size_t c = 0; c < n; ++c) mixed[c] += weight * *from++;
    const float scale = n != 4 ? 1 : mixed[n - 1] > 0 ? 255 / mixed[n - 1] : 0;
    for (size_t c = 0; c < n; ++c) *value++ = rounded(mixed[c] * (c == 3 ? 1 : scale), T{});
  }
}

using Squeeze = void (*)(const std::vector<float>&, const std::vector<Taps>&, uint8_t*);

Squeeze squeeze_of(PixelFormat format) {
  switch (format) {
    case PixelFormat::gray8: return squeeze<uint8_t, 1>;
    case PixelFormat::rgb8: return squeeze<uint8_t, 3>;
    case PixelFormat::gray_float32: return squeeze<float, 1>;
    default: return squeeze<uint8_t, 4>;
  }
}

/// Resamples a part of the source into `to` at the placement: first down, where rows are long runs, then across.
void draw(const Image& from, Image& to, const Placement& p) {
  const bool floats = from.format == PixelFormat::gray_float32;
  const size_t n = floats ? 1 : bytes_per_pixel(from.format), pixels = static_cast<size_t>(from.width);
  const size_t line_size = pixels * n, height = static_cast<size_t>(p.height);
  const auto columns = taps_for(pixels, p.source_x, p.source_width, static_cast<size_t>(p.width));
  const auto rows = taps_for(static_cast<size_t>(from.height), p.source_y, p.source_height, height);
  const Squeeze squeeze_row = squeeze_of(from.format);
  // The partial sums of rows [first, last), which read the current row of the source.
  std::vector<std::vector<float>> sums(height);
  std::vector<float> line(line_size);
  size_t first = 0, last = 0;
  for (size_t y = rows.front().first; first < height; ++y) {
    while (last < height && rows[last].first <= y) sums[last++].assign(line_size, 0.0f);
    if (first == last) continue;
    const uint8_t* source = row_of(from, static_cast<int64_t>(y));
    if (floats)
      std::memcpy(line.data(), source, line_size * sizeof(float));
    else
      widen(source, pixels, n, line.data());
    for (size_t row = first; row < last; ++row) {
      const size_t tap = y - rows[row].first;
      if (tap < rows[row].weights.size()) add_scaled(line.data(), rows[row].weights[tap], line_size, sums[row].data());
    }
    for (; first < last && y + 1 >= rows[first].first + rows[first].weights.size(); ++first) {
      squeeze_row(sums[first], columns, pixel_at(to, p.x, p.y + static_cast<int64_t>(first)));
      sums[first] = {};
    }
  }
}

/// What lies around a fitted image: black, opaque.
Image black(int64_t width, int64_t height, PixelFormat format) {
  Image out(width, height, format);
  if (bytes_per_pixel(format) != 4 || format == PixelFormat::gray_float32) return out;
  for (int64_t i = 3; i < out.row_bytes * height; i += 4) out.pixels.get()[i] = 255;
  return out;
}

}  // namespace

Placement place(int64_t source_width, int64_t source_height, int64_t width, int64_t height, ImageFit fit,
                const ImageRegion& region) {
  if (source_width < 1 || source_height < 1 || width < 1 || height < 1)
    refuse(ErrorKind::invalid_argument, "resize: expected sizes above 0, got ", source_width, " x ", source_height,
           " to ", width, " x ", height);
  constexpr double kRoundoff = 1e-9;
  if (!(region.x >= 0 && region.y >= 0 && region.width > 0 && region.height > 0 &&
        region.x + region.width <= 1 + kRoundoff && region.y + region.height <= 1 + kRoundoff))
    refuse(ErrorKind::invalid_argument, "region: expected a part of the image in fractions from 0 to 1, got (",
           region.x, ", ", region.y, ") with ", region.width, " x ", region.height);
  const double sx = region.x * static_cast<double>(source_width), sy = region.y * static_cast<double>(source_height);
  const double sw = region.width * static_cast<double>(source_width);
  const double sh = region.height * static_cast<double>(source_height);
  const double across = static_cast<double>(width) / sw, down = static_cast<double>(height) / sh;
  Placement p{sx, sy, sw, sh, 0, 0, width, height};
  if (fit == ImageFit::scale_fit) {
    const double scale = std::min(across, down);
    p.width = std::clamp<int64_t>(std::lround(sw * scale), 1, width);
    p.height = std::clamp<int64_t>(std::lround(sh * scale), 1, height);
    p.x = (width - p.width) / 2;
    p.y = (height - p.height) / 2;
  } else if (fit == ImageFit::center_crop) {
    const double scale = std::max(across, down);
    p.source_width = std::min(sw, static_cast<double>(width) / scale);
    p.source_height = std::min(sh, static_cast<double>(height) / scale);
    p.source_x += (sw - p.source_width) / 2;
    p.source_y += (sh - p.source_height) / 2;
  }
  return p;
}

}  // namespace files

std::string_view to_string(ImageFit fit) {
  switch (fit) {
    case ImageFit::scale_fill: return "scaleFill";
    case ImageFit::scale_fit: return "scaleFit";
    case ImageFit::center_crop: return "centerCrop";
  }
  return "?";
}

ImageFit image_fit(std::string_view name) {
  for (const ImageFit fit : {ImageFit::scale_fill, ImageFit::scale_fit, ImageFit::center_crop})
    if (to_string(fit) == name) return fit;
  files::refuse(ErrorKind::invalid_argument, "fit: expected scaleFill, scaleFit or centerCrop, got '", name, "'");
}

Image fit_image(const Image& image, int64_t width, int64_t height, ImageFit fit, const ImageRegion& region) {
  files::require_pixels(image);
  const files::Placement placement = files::place(image.width, image.height, width, height, fit, region);
  if (width == image.width && height == image.height && region == ImageRegion{}) return image;
  if (image.format == PixelFormat::gray_float16)
    return converted(fit_image(converted(image, PixelFormat::gray_float32), width, height, fit, region), image.format);
  Image result = files::black(width, height, image.format);
  files::draw(image, result, placement);
  return result;
}

}  // namespace moka
