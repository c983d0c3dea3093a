// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/winograd_tiles.h"

#include <cmath>
#include <limits>
#include <span>
#include <tuple>

namespace moka::devices::cpu {

using vector::winograds;

namespace {

constexpr float kLargest = std::numeric_limits<float>::max(), kSmaller = 0x1p-64f;
constexpr int64_t kMostBlock = 16, kMostTaps = 9, kMostPixels = 64, kMostChannels = 8;
constexpr uint8_t kNaN = 2;  // of the bits of NonFiniteWindows

using Output = DirectSums::Output;

/// The positions of taps [first, first + n) of the windows in a channel of the input; -1: outside.
void places_of(const WinogradBlocking& p, std::span<const Output> outputs, int64_t first, int64_t n, int64_t* to) {
  const int64_t lines = p.w.kernel[1], columns = p.w.kernel[2];
  for (const Output& o : outputs)
    for (int64_t t = first; t < first + n; t++) {
      const int64_t d = o.front + t / (lines * columns), h = o.top + t / columns % lines, v = o.left + t % columns;
      const bool inside = d >= 0 && d < p.w.in[0] && h >= 0 && h < p.w.in[1] && v >= 0 && v < p.w.in[2];
      const int64_t image = o.image * p.in_groups * p.in_volume();
      *to++ = inside ? image + ((d * p.w.in[1] + h) * p.w.in[2] + v) * p.block() : -1;
    }
}

/// Computes one block of channels of some outputs.
void sum_directly(const WinogradBlocking& p, const float* x, const Taps& weights, const float* bias, int64_t group,
                  std::span<const Output> pixels) {
  const int64_t block = p.block(), all = p.w.taps(), used = std::min(block, p.out - group * block);
  const int64_t at_once = all <= kMostTaps ? kMostChannels : 1;
  alignas(64) double sums[kMostPixels * kMostBlock] = {};
  int64_t places[kMostPixels * kMostTaps];
  const auto store = [&] {
    for (size_t i = 0; i < pixels.size(); i++)
      for (int64_t o = 0; o < block; o++)
        pixels[i].y[o] = static_cast<float>(sums[static_cast<int64_t>(i) * block + o] + static_cast<double>(bias[o]));
  };
  // Infinities usually meet weights of both signs in the first channels. What follows cannot change a NaN.
  const auto all_nan = [&] {
    for (int64_t i = 0; i < static_cast<int64_t>(pixels.size()); i++)
      for (int64_t o = 0; o < used; o++)
        if (!std::isnan(sums[i * block + o])) return false;
    return true;
  };
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
        const float* from = x + (c + k) / block * p.in_volume() + (c + k) % block;
        double values[kMostPixels * kMostTaps];
        for (int64_t i = 0; i < count; i++) values[i] = places[i] < 0 ? 0 : static_cast<double>(from[places[i]]);
        winograds().sum_taps(taps + k * n * block, n, values, static_cast<int64_t>(pixels.size()), sums);
      }
      if (all_nan()) return store();
    }
  }
  store();
}

/// The tiles of a row in the output.
struct Outputs {
  int64_t wide, rows, columns;

  Outputs(const WinogradBlocking& p, const Row& r) : wide(p.f->across.out) { std::tie(rows, columns) = p.outputs(r); }

  /// Calls f(column, columns) for each tile of y that has a result that is infinite or NaN.
  template <class F>
  void each_non_finite(const WinogradBlocking& p, const float* y, F f) const {
    for (int64_t t = 0; t < columns; t += wide) {
      const int64_t width = std::min(wide, columns - t);
      bool is_finite = true;
      for (int64_t i = 0; i < rows; i++)
        is_finite &= winograds().are_finite(y + (i * p.w.out[2] + t) * p.block(), width * p.block());
      if (!is_finite) f(t, width);
    }
  }
};

}  // namespace

const uint8_t* NonFiniteWindows::of(const Row& r) {
  uint8_t* to = memory_ + p_.chunk + r.at * p_.pixels();
  if (memory_[r.at] == 0) look(r, to);
  memory_[r.at] = 1;
  return to;
}

void NonFiniteWindows::look(const Row& r, uint8_t* to) const {
  uint8_t seen[vector::kMostLines][vector::kMostColumns] = {};
  const auto [rows, columns] = p_.outputs(r);
  const int64_t front = r.slice * p_.w.strides[0] - p_.w.pads_begin[0],
                top = r.y * p_.f->down.out * p_.w.strides[1] - p_.w.pads_begin[1],
                left = r.x * p_.f->across.out * p_.w.strides[2] - p_.w.pads_begin[2];
  const int64_t high = (rows - 1) * p_.w.strides[1] + p_.w.kernel[1],
                wide = (columns - 1) * p_.w.strides[2] + p_.w.kernel[2];
  const int64_t begin = std::clamp<int64_t>(left, 0, p_.w.in[2]), end = std::clamp(left + wide, begin, p_.w.in[2]);
  for (int64_t g = 0; g < p_.in_groups && begin < end; g++)
    for (int64_t d = std::max<int64_t>(front, 0); d < std::min(front + p_.w.kernel[0], p_.w.in[0]); d++)
      for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + high, p_.w.in[1]); h++) {
        const float* volume = x_ + (r.image * p_.in_groups + g) * p_.in_volume();
        winograds().note_odd(volume + ((d * p_.w.in[1] + h) * p_.w.in[2] + begin) * p_.block(), end - begin,
                             seen[h - top] + begin - left);
      }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++, to++) {
      *to = 0;
      for (int64_t k = 0; k < p_.w.kernel[1]; k++)
        for (int64_t l = 0; l < p_.w.kernel[2]; l++)
          *to = static_cast<uint8_t>(*to | seen[i * p_.w.strides[1] + k][j * p_.w.strides[2] + l]);
    }
}

void DirectSums::add(const Row& r, int64_t i, int64_t j, uint8_t sees, float* y) {
  const int64_t block = p_.block(), used = std::min(block, p_.out - group_ * block);
  float* to = y + (i * p_.w.out[2] + j) * block;
  if ((sees & kNaN) != 0) {  // NaN in all channels, whatever the weights
    std::fill_n(to, used, std::numeric_limits<float>::quiet_NaN());
    std::fill_n(to + used, block - used, 0.0f);
    return;
  }
  outputs_[count_++] = {r.image, r.slice * p_.w.strides[0] - p_.w.pads_begin[0],
                        (r.y * p_.f->down.out + i) * p_.w.strides[1] - p_.w.pads_begin[1],
                        (r.x * p_.f->across.out + j) * p_.w.strides[2] - p_.w.pads_begin[2], to};
  if (count_ == kMost) finish();
}

void DirectSums::finish() {
  if (count_ > 0) sum_directly(p_, x_, weights_, bias_, group_, std::span(outputs_, static_cast<size_t>(count_)));
  count_ = 0;
}

void transform_row(const WinogradBlocking& p, const float* plane, const Row& r, bool again, float* v) {
  const int64_t height = p.w.in[1], width = p.w.in[2], block = p.block();
  const vector::WinogradAxis &down = p.f->down, &across = p.f->across;
  const int64_t top = r.y * down.out * down.stride - p.w.pads_begin[1],
                left = r.x * across.out * across.stride - p.w.pads_begin[2];
  const float* lines[vector::kMostLines];
  for (int i = 0; i < down.in; i++)
    lines[i] = plane != nullptr && top + i >= 0 && top + i < height ? plane + (top + i) * width * block : nullptr;
  if (!again) return p.f->input(lines, width, left, r.count, v, p.in_step, p.in_groups * block);
  alignas(64) float scaled[vector::kMostLines * vector::kMostColumns * kMostBlock];
  const int64_t begin = std::clamp<int64_t>(left, 0, width),
                end = std::clamp((r.count - 1) * across.out * across.stride + across.in + left, begin, width);
  for (int i = 0; i < down.in; i++) {
    if (lines[i] == nullptr) continue;
    const float* from = lines[i] + begin * block;
    float* to = scaled + i * vector::kMostColumns * block;
    for (int64_t k = 0; k < (end - begin) * block; k++) to[k] = std::fabs(from[k]) <= kLargest ? from[k] * kSmaller : 0;
    lines[i] = to;
  }
  p.f->input(lines, end - begin, left - begin, r.count, v, p.in_step, p.in_groups * block);
}

bool correct_tiles(const WinogradBlocking& p, NonFiniteWindows& non_finite, DirectSums& direct, const Row& r,
                   float* y) {
  const Outputs at(p, r);
  const uint8_t* sees = non_finite.of(r);
  bool left = false;
  at.each_non_finite(p, y, [&](int64_t t, int64_t width) {
    for (int64_t i = 0; i < at.rows; i++)
      for (int64_t j = t; j < t + width; j++) left |= sees[i * at.columns + j] == 0;
  });
  if (left) return true;
  at.each_non_finite(p, y, [&](int64_t t, int64_t width) {
    for (int64_t i = 0; i < at.rows; i++)
      for (int64_t j = t; j < t + width; j++) direct.add(r, i, j, sees[i * at.columns + j], y);
  });
  return false;
}

void correct_again(const WinogradBlocking& p, NonFiniteWindows& non_finite, DirectSums& direct, const Row& r,
                   const float* bias, const float* made, float* y) {
  const int64_t block = p.block();
  const Outputs at(p, r);
  const uint8_t* sees = non_finite.of(r);
  alignas(64) float sums[vector::kMostLines * vector::kMostColumns * kMostBlock];
  alignas(64) const float none[kMostBlock] = {};
  p.f->output(made, p.out_step, p.panel(), none, r.count, at.rows, at.columns, sums, at.columns * block);
  at.each_non_finite(p, y, [&](int64_t t, int64_t width) {
    for (int64_t i = 0; i < at.rows; i++)
      for (int64_t j = t; j < t + width; j++) {
        const float* sum = sums + (i * at.columns + j) * block;
        const uint8_t seen = sees[i * at.columns + j];
        if (seen != 0 || !winograds().are_finite(sum, block)) {
          direct.add(r, i, j, seen, y);
          continue;
        }
        for (int64_t k = 0; k < block; k++) y[(i * p.w.out[2] + j) * block + k] = sum[k] / kSmaller + bias[k];
      }
  });
}

}  // namespace moka::devices::cpu
