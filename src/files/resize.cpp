// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "files/error.h"
#include "files/pixels.h"
#include "files/placement.h"
#include "moka/files.h"
#include "pictures/taps.h"

namespace moka {
namespace files {
namespace {

using pictures::taps_for;
using Taps = pictures::Taps<float>;

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
  const auto columns = taps_for<float>(pixels, p.source_x, p.source_width, static_cast<size_t>(p.width));
  const auto rows = taps_for<float>(static_cast<size_t>(from.height), p.source_y, p.source_height, height);
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
  Result<Placement> placed =
      pictures::place(source_width, source_height, width, height, static_cast<pictures::Fit>(fit),
                      {region.x, region.y, region.width, region.height});
  if (!placed.ok()) refuse(ErrorKind::invalid_argument, placed.error().to_string());
  return *placed;
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
