#include "devices/cpu/common/winograd_tiles.h"

#include <cmath>
#include <limits>
#include <span>

namespace moka::devices::cpu {

using vector::winograds;

namespace {

constexpr int64_t kMostBlock = 16, kMostTaps = 9, kMostPixels = 64, kMostChannels = 8;

/// A result to compute directly: where its window begins, and its place in y.
struct Pixel {
  int64_t top, left;
  float* y;
};

/// Where taps [first, first + n) of the pixels' windows are in the plane of an input channel. Outside the image: -1.
void places_of(const WinogradBlocking& p, std::span<const Pixel> pixels, int64_t first, int64_t n, int64_t* to) {
  for (const Pixel& pixel : pixels)
    for (int64_t t = first; t < first + n; t++) {
      const int64_t h = pixel.top + t / p.w.kernel[1], v = pixel.left + t % p.w.kernel[1];
      const bool inside = h >= 0 && h < p.w.in[0] && v >= 0 && v < p.w.in[1];
      *to++ = inside ? (h * p.w.in[1] + v) * p.block() : -1;
    }
}

/// Computes one block of channels of some pixels of an image.
void sum_directly(const WinogradBlocking& p, const float* x, int64_t image, const Taps& weights, const float* bias,
                  int64_t group, std::span<const Pixel> pixels) {
  const int64_t block = p.block(), all = p.w.kernel[0] * p.w.kernel[1], used = std::min(block, p.out - group * block);
  const int64_t at_once = all <= kMostTaps ? kMostChannels : 1, plane = p.w.in[0] * p.w.in[1] * block;
  alignas(64) double sums[kMostPixels * kMostBlock] = {};
  int64_t places[kMostPixels * kMostTaps];
  for (int64_t first = 0; first < all; first += kMostTaps) {
    const int64_t n = std::min(kMostTaps, all - first), count = static_cast<int64_t>(pixels.size()) * n;
    places_of(p, pixels, first, n, places);
    for (int64_t c = 0; c < p.in; c += at_once) {
      const int64_t some = std::min(at_once, p.in - c);
      alignas(64) double taps[kMostChannels * kMostTaps * kMostBlock] = {};
      for (int64_t o = 0; o < used; o++) {
        float line[kMostChannels * kMostTaps];
        weights.read(((group * block + o) * p.in + c) * all + first, some * n, line);
        for (int64_t t = 0; t < some * n; t++) taps[t * block + o] = static_cast<double>(line[t]);
      }
      for (int64_t k = 0; k < some; k++) {
        const float* from = x + (image * p.in_groups + (c + k) / block) * plane + (c + k) % block;
        double values[kMostPixels * kMostTaps];
        for (int64_t i = 0; i < count; i++) values[i] = places[i] < 0 ? 0 : static_cast<double>(from[places[i]]);
        winograds().sum_taps(taps + k * n * block, n, values, static_cast<int64_t>(pixels.size()), sums);
      }
    }
  }
  for (size_t i = 0; i < pixels.size(); i++)
    for (int64_t o = 0; o < block; o++)
      pixels[i].y[o] = static_cast<float>(sums[static_cast<int64_t>(i) * block + o] + static_cast<double>(bias[o]));
}

/// Whether the window that begins at a pixel holds a NaN. Such a result is NaN in all channels, whatever the weights.
bool sees_nan(const WinogradBlocking& p, const float* x, int64_t image, int64_t top, int64_t left) {
  const int64_t height = p.w.in[0], width = p.w.in[1], block = p.block();
  const int64_t last_row = std::min(top + p.w.kernel[0], height), last_column = std::min(left + p.w.kernel[1], width);
  for (int64_t g = 0; g < p.in_groups; g++)
    for (int64_t h = std::max<int64_t>(top, 0); h < last_row; h++)
      for (int64_t v = std::max<int64_t>(left, 0); v < last_column; v++)
        if (winograds().has_nan(x + (((image * p.in_groups + g) * height + h) * width + v) * block)) return true;
  return false;
}

}  // namespace

void correct_tiles(const WinogradBlocking& p, const float* x, const Taps& weights, const float* bias, const Row& r,
                   int64_t group, float* y) {
  const int64_t block = p.block(), used = std::min(block, p.out - group * block);
  const int64_t high = p.f->down.out, wide = p.f->across.out, top = r.y * high, left = r.x * wide;
  const int64_t rows = std::min(high, p.w.out[0] - top), columns = std::min(r.count * wide, p.w.out[1] - left);
  const auto begin = [&](int axis, int64_t at) { return at * p.w.strides[axis] - p.w.pads_begin[axis]; };
  Pixel pixels[kMostPixels];
  size_t count = 0;
  const auto finish = [&] {
    sum_directly(p, x, r.image, weights, bias, group, std::span(pixels, count));
    count = 0;
  };
  for (int64_t t = 0; t < columns; t += wide) {
    const int64_t width = std::min(wide, columns - t);
    bool odd = false;
    for (int64_t i = 0; i < rows; i++) {
      const float* line = y + (i * p.w.out[1] + t) * block;
      for (int64_t k = 0; k < width * block; k++) odd |= !std::isfinite(line[k]);
    }
    if (!odd) continue;
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = t; j < t + width; j++) {
        float* to = y + (i * p.w.out[1] + j) * block;
        const int64_t h = begin(0, top + i), v = begin(1, left + j);
        if (sees_nan(p, x, r.image, h, v)) {
          std::fill_n(to, used, std::numeric_limits<float>::quiet_NaN());
          std::fill_n(to + used, block - used, 0.0f);
          continue;
        }
        pixels[count++] = {h, v, to};
        if (count == kMostPixels) finish();
      }
  }
  if (count > 0) finish();
}

}  // namespace moka::devices::cpu
