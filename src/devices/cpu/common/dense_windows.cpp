// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/dense_windows.h"

#include <array>

#include "base/half.h"
#include "devices/cpu/vector/gemm.h"

namespace moka::devices::cpu {

using ops::Window;
using vector::dense;

DenseBlocking dense_blocking_of(const Window& w, int64_t images, int64_t x, int64_t y) {
  const int64_t block = dense().block;
  DenseBlocking p{};
  p.w = w;
  p.images = images;
  p.in = x / w.groups;
  p.out = y / w.groups;
  p.in_groups = (p.in + block - 1) / block;
  p.out_groups = (p.out + block - 1) / block;
  p.unit = block;
  p.in_step = p.in_plane();
  return p;
}

DenseBlocking dense_blocking_of_rows(const Window& w, int64_t images, int64_t channels, int64_t y) {
  Window of = w;
  of.in[0] = of.kernel[0] = channels;
  of.kernel[2] = 1;
  DenseBlocking p = dense_blocking_of(of, images, w.kernel[2], y);
  p.unit = 1;
  p.in_step = dense().block;
  return p;
}

std::string too_large_for_dense(const DenseBlocking& p) {
  constexpr int64_t kMostPlane = 1 << 30, kMostTaps = 1 << 14, kFar = 1 << 24;
  bool large = p.in_plane() > kMostPlane || p.taps() > kMostTaps;
  for (int i = 0; i < 3; i++)
    large |= std::max({p.w.strides[i], p.w.extent(i), p.w.pads_begin[i], -p.w.pads_begin[i], p.w.out[i]}) > kFar;
  return large ? "a very large image or window" : "";
}

void divide_dense(DenseBlocking& p, int threads) {
  constexpr int64_t kMostTable = 128 << 10;
  const int64_t cache = l2_cache_bytes(), bytes = sizeof(float);
  int64_t touched = 1;  // pixels of the input
  for (int i = 0; i < 3; i++)
    touched *= std::min({p.w.in[i], p.w.out[i] * p.w.kernel[i], (p.w.out[i] - 1) * p.w.strides[i] + p.w.extent(i)});
  const int64_t read = p.w.groups * (p.unit == 1 ? 1 : p.in_groups) * p.unit * touched * bytes,
                weights = p.weights() * bytes;
  p.chunks = std::max<int64_t>(1, 2 * read / cache);
  if (p.chunks * weights > p.panels() * read) p.chunks = 1;
  p.chunks = std::max(p.chunks, (p.pixels() * p.taps() * 4 + kMostTable - 1) / kMostTable);
  p.parts = 1;
  if (threads > 1) {
    const int64_t shares = 4 * threads, most = (p.pixels() + 2 * dense().pixels - 1) / (2 * dense().pixels);
    if (weights <= read) {
      p.chunks = std::max(p.chunks, std::min(shares, most) / threads * threads);
    } else {
      p.parts = std::clamp<int64_t>((shares + p.chunks - 1) / p.chunks, 1, p.panels());
      p.chunks = std::max(p.chunks, std::min((shares + p.parts - 1) / p.parts, most));
    }
  }
  p.chunks = std::min(p.chunks, p.pixels());
  const int64_t of_block = p.taps() * dense().block * 2 * dense().lanes * bytes;
  p.deep = std::clamp<int64_t>(cache / 4 / std::max<int64_t>(of_block, 1), 1, p.in_groups);
}

namespace {

/// Fills the table for `count` pixels of a row of the output, from column `left` on. `pixel` is the first one's number
/// in the table, and `origin` the position of its first tap along the outer axes.
void find_row(const DenseBlocking& p, std::array<int64_t, 2> origin, int64_t left, int64_t pixel, int64_t count,
              const DensePlaces& to) {
  const Window& w = p.w;
  const auto unit = static_cast<int32_t>(p.unit), stride = static_cast<int32_t>(w.strides[2] * unit),
             width = static_cast<int32_t>(w.in[2] * unit);
  const auto reaches = [&](int axis, int64_t from, int64_t tap) {
    const int64_t at = from + tap * w.dilations[axis];
    return at >= 0 && at < w.in[axis];
  };
  bool whole = true;
  for (int axis = 0; axis < 2; axis++)
    whole &= reaches(axis, origin[static_cast<size_t>(axis)], 0) &&
             reaches(axis, origin[static_cast<size_t>(axis)], w.kernel[axis] - 1);
  int32_t* at = to.at + pixel;
  for (int64_t d = 0; d < w.kernel[0]; d++)
    for (int64_t h = 0; h < w.kernel[1]; h++) {
      const bool is_row = reaches(0, origin[0], d) && reaches(1, origin[1], h);
      const auto row = static_cast<int32_t>(
          is_row ? ((origin[0] + d * w.dilations[0]) * w.in[1] + origin[1] + h * w.dilations[1]) * width : 0);
      for (int64_t k = 0; k < w.kernel[2]; k++, at += p.most_pixels()) {
        auto x = static_cast<int32_t>((left * w.strides[2] - w.pads_begin[2] + k * w.dilations[2]) * unit);
        if (!is_row)
          std::fill_n(at, count, -1);
        else
          for (int64_t i = 0; i < count; i++, x += stride) at[i] = x >= 0 && x < width ? row + x : -1;
      }
    }
  for (int64_t i = 0; i < count; i++) {
    const int64_t x = (left + i) * w.strides[2] - w.pads_begin[2];
    const bool inside = whole && reaches(2, x, 0) && reaches(2, x, w.kernel[2] - 1);
    to.edges[pixel + i + 1] = to.edges[pixel + i] + !inside;
  }
}

}  // namespace

void DensePlaces::find(const DenseBlocking& p, int64_t first, int64_t count) const {
  const Window& w = p.w;
  edges[0] = 0;
  for (int64_t i = 0, n = 0; i < count; i += n) {
    const int64_t left = (first + i) % w.out[2], row = (first + i) / w.out[2];
    n = std::min(w.out[2] - left, count - i);
    find_row(p, {row / w.out[1] * w.strides[0] - w.pads_begin[0], row % w.out[1] * w.strides[1] - w.pads_begin[1]},
             left, i, n, *this);
  }
  int32_t* step = steps;
  for (int64_t d = 0; d < w.kernel[0]; d++)
    for (int64_t h = 0; h < w.kernel[1]; h++)
      for (int64_t k = 0; k < w.kernel[2]; k++)
        *step++ = static_cast<int32_t>(
            ((d * w.dilations[0] * w.in[1] + h * w.dilations[1]) * w.in[2] + k * w.dilations[2]) * p.unit);
}

void pack_dense_panel(const DenseBlocking& p, int64_t panel, const float* rows, float* to) {
  const int64_t taps = p.taps(), block = dense().block, width = p.width(panel);
  std::vector<float> lines(static_cast<size_t>(block * taps * kMostDensePanel));  // [channel][tap][width]
  for (int64_t begin = 0; begin < p.in; begin += block) {
    const int64_t channels = std::min(block, p.in - begin);
    vector::gemm().pack_panel(rows + begin * taps, p.in * taps, channels * taps, p.used(panel), width, lines.data(),
                              nullptr);
    for (int64_t tap = 0; tap < taps; tap++)
      for (int64_t c = 0; c < channels; c++, to += width)
        std::copy_n(lines.data() + (c * taps + tap) * width, width, to);
  }
}

void DenseTask::prepare(vector::Dense::Call& call, int64_t deep, bool last) const {
  const int64_t block = dense().block, width = p.width(of_group);
  call.x = x + deep * p.in_step;
  call.x_step = p.in_step;
  call.in = std::min(p.deep * block, p.in - deep * block);
  call.taps = p.taps();
  call.steps = places.steps;
  call.pitch = p.most_pixels();
  const int64_t first = deep * block * p.taps(), rows = call.in * p.taps(), from = weight + first * width;
  call.widened = room;
  call.halves = weights.is_half() ? weights.at<uint16_t>(from) : nullptr;
  call.weight = weights.is_half() ? room : weights.floats(weight, width, first, rows, room);
  // The next panel is fetched while one is used if the weights exceed the cache.
  call.ahead = p.weights() * weights.element() > l2_cache_bytes() / 2 ? weights.at(from + rows * width) : nullptr;
  call.ahead_bytes = weights.element();
  call.width = width;
  call.used = p.used(of_group);
  call.bias = deep == 0 ? bias : nullptr;
  call.limits = last ? limits : nullptr;
  call.y_step = y_step;
}

void DenseTask::run_inside(int64_t i) const {
  constexpr int32_t kNone[2] = {};
  const int64_t block = dense().block, width = p.width(of_group);
  vector::Dense::Call call{};
  call.steps = call.edges = kNone;
  call.pitch = call.pixels = 1;
  call.weight = room;
  call.width = width;
  call.used = width;
  call.y = y;
  call.y_step = y_step;
  call.places = kNone;
  call.bias = bias;
  dense().multiply(call);
  call.bias = nullptr;
  call.taps = 1;
  for (int64_t first = 0, from = weight; first < p.in; first += block) {
    call.x = x + first / block * p.in_step;
    call.in = std::min(block, p.in - first);
    for (int64_t tap = 0; tap < p.taps(); tap++, from += call.in * width) {
      call.places = places.at + tap * p.most_pixels() + i;
      if (*call.places < 0) continue;
      if (weights.is_half())
        half_to_float(weights.at<uint16_t>(from), room, static_cast<size_t>(call.in * width));
      else
        call.weight = weights.floats(weight, width, (from - weight) / width, call.in, room);
      dense().multiply(call);
    }
  }
  call.in = 0;
  call.places = kNone;
  call.used = p.used(of_group);
  call.limits = limits;
  dense().multiply(call);
}

}  // namespace moka::devices::cpu
