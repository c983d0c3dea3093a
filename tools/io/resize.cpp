// SPDX-License-Identifier: Apache-2.0
#include "io/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "io/io_error.h"

namespace moka::io {
namespace {

double weight_at(double x, Filter filter) {
  x = std::abs(x);
  if (filter == Filter::triangle) return std::max(0.0, 1 - x);
  if (x >= 3) return 0;
  if (x < 1e-9) return 1;
  const double p = std::numbers::pi * x;
  return 3 * std::sin(p) * std::sin(p / 3) / (p * p);
}

struct Taps {
  size_t first = 0;
  std::vector<float> weights;
};

/// The source pixels that are mixed into each target pixel. The source box is [start, start + length).
std::vector<Taps> taps_for(size_t source, double start, double length, size_t target, Filter filter) {
  const double step = length / static_cast<double>(target);
  const double stretch = std::max(1.0, step);
  const double reach = (filter == Filter::triangle ? 1 : 3) * stretch;
  std::vector<Taps> result(target);
  for (size_t i = 0; i < target; ++i) {
    const double center = start + (static_cast<double>(i) + 0.5) * step;
    const auto limit = static_cast<int64_t>(source);
    const int64_t first = std::clamp<int64_t>(static_cast<int64_t>(std::floor(center - reach)), 0, limit - 1);
    const int64_t last = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(center + reach)), first + 1, limit);
    result[i].first = static_cast<size_t>(first);
    std::vector<double> weights;
    double sum = 0;
    for (int64_t s = first; s < last; ++s) {
      weights.push_back(weight_at((static_cast<double>(s) + 0.5 - center) / stretch, filter));
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

/// A row of the result, from a row of floats as wide as the source.
template <size_t n>
void squeeze(const std::vector<float>& line, const std::vector<Taps>& columns, uint8_t* pixel) {
  for (const Taps& column : columns) {
    std::array<float, n> mixed{};
    const float* from = &line[column.first * n];
    for (const float weight : column.weights)
      for (size_t c = 0; c < n; ++c) mixed[c] += weight * *from++;
    const float scale = n != 4 ? 1 : mixed[n - 1] > 0 ? 255 / mixed[n - 1] : 0;
    for (size_t c = 0; c < n; ++c)
      *pixel++ = static_cast<uint8_t>(std::clamp(std::lround(mixed[c] * (c == 3 ? 1 : scale)), 0l, 255l));
  }
}

/// Resamples a part of the source into `to` at the placement: first down, where rows are long runs, then across.
void draw(const Picture& from, Picture& to, const Placement& p, Filter filter) {
  constexpr decltype(&squeeze<1>) kSqueeze[] = {squeeze<1>, squeeze<2>, squeeze<3>, squeeze<4>};
  const size_t n = from.channels, line_size = from.width * n;
  const auto columns = taps_for(from.width, p.source_x, p.source_width, p.width, filter);
  const auto rows = taps_for(from.height, p.source_y, p.source_height, p.height, filter);
  // The partial sums of rows [first, last), which read the current row of the source.
  std::vector<std::vector<float>> sums(p.height);
  std::vector<float> line(line_size);
  size_t first = 0, last = 0;
  for (size_t y = rows.front().first; first < p.height; ++y) {
    while (last < p.height && rows[last].first <= y) sums[last++].assign(line_size, 0.0f);
    if (first == last) continue;
    widen(from.at(0, y), from.width, n, line.data());
    for (size_t row = first; row < last; ++row) {
      const size_t tap = y - rows[row].first;
      if (tap < rows[row].weights.size()) add_scaled(line.data(), rows[row].weights[tap], line_size, sums[row].data());
    }
    for (; first < last && y + 1 >= rows[first].first + rows[first].weights.size(); ++first) {
      kSqueeze[n - 1](sums[first], columns, to.at(p.x, p.y + first));
      sums[first] = {};
    }
  }
}

void require_pixels(const Picture& picture) {
  if (picture.channels == 0 || picture.channels > 4 ||
      picture.pixels.size() != picture.width * picture.height * picture.channels) {
    fail("resize", "expected ", picture.width, " x ", picture.height, " pixels of 1 to 4 channels, got ",
         picture.pixels.size(), " bytes in ", picture.channels, " channels");
  }
}

}  // namespace

Fit parse_fit(std::string_view text) {
  if (text == "scaleFill") return Fit::scale_fill;
  if (text == "scaleFit") return Fit::scale_fit;
  if (text == "centerCrop") return Fit::center_crop;
  fail("fit", "expected scaleFill, scaleFit or centerCrop, got '", text, "'");
}

Placement place(size_t source_width, size_t source_height, size_t width, size_t height, Fit fit) {
  if (source_width == 0 || source_height == 0 || width == 0 || height == 0) {
    fail("resize", "expected sizes above 0, got ", source_width, " x ", source_height, " to ", width, " x ", height);
  }
  const auto sw = static_cast<double>(source_width), sh = static_cast<double>(source_height);
  const double across = static_cast<double>(width) / sw, down = static_cast<double>(height) / sh;
  Placement p{0, 0, sw, sh, 0, 0, width, height};
  if (fit == Fit::scale_fit) {
    const double scale = std::min(across, down);
    p.width = std::clamp<size_t>(static_cast<size_t>(std::lround(sw * scale)), 1, width);
    p.height = std::clamp<size_t>(static_cast<size_t>(std::lround(sh * scale)), 1, height);
    p.x = (width - p.width) / 2;
    p.y = (height - p.height) / 2;
  } else if (fit == Fit::center_crop) {
    const double scale = std::max(across, down);
    p.source_width = std::min(sw, static_cast<double>(width) / scale);
    p.source_height = std::min(sh, static_cast<double>(height) / scale);
    p.source_x = (sw - p.source_width) / 2;
    p.source_y = (sh - p.source_height) / 2;
  }
  return p;
}

Picture resize(const Picture& picture, size_t width, size_t height, Filter filter) {
  return fit(picture, width, height, Fit::scale_fill, filter);
}

Picture fit(const Picture& picture, size_t width, size_t height, Fit how, Filter filter) {
  require_pixels(picture);
  const Placement placement = place(picture.width, picture.height, width, height, how);
  if (width == picture.width && height == picture.height) return picture;
  Picture result = Picture::blank(width, height, picture.channels);
  draw(picture, result, placement, filter);
  return result;
}

}  // namespace moka::io
