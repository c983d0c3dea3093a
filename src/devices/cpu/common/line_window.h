// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "ops/common/window.h"

namespace moka::devices::cpu {

/// A one-dimensional convolution, or one with a window of one pixel, whose input is copied as lines. With several taps
/// and a stride, the line of phase s holds pixels s, s + stride, ..., so that each tap reads adjacent pixels.
struct LineWindow {
  ops::Window w;            ///< of rank 2; a one-dimensional window lies across
  int64_t images, in, out;  ///< in, out: channels per group
  int64_t chunks, parts;    ///< divisions of a group's pixels and panels

  LineWindow() = default;
  LineWindow(const ops::Window& window, const ir::Shape& x, const ir::Shape& y)
      : w(window.as(2)), images(x[0]), in(x[1] / w.groups), out(y[1] / w.groups), chunks(1), parts(1) {}

  int64_t taps() const { return w.kernel[1]; }
  int64_t pixels() const { return w.out_count(); }
  /// The first pixel of a chunk. Chunks but the last hold multiples of `unit` pixels.
  int64_t first_pixel(int64_t chunk, int64_t unit) const {
    return chunk == chunks ? pixels() : pixels() / unit * chunk / chunks * unit;
  }
  /// Pixels between the first and the last tap in the line of a phase.
  int64_t halo() const { return (taps() - 1) * w.dilations[1] / w.strides[1]; }
  int64_t phases() const { return taps() == 1 ? 1 : w.strides[1]; }
  /// Where each tap reads the first pixel, in floats. `line`: of a phase, `pixel`: of a pixel.
  std::vector<int64_t> taps_at(int64_t line, int64_t pixel) const {
    std::vector<int64_t> at(static_cast<size_t>(taps()), 0);
    for (int64_t t = 1; t < taps(); t++) {
      const int64_t from = t * w.dilations[1], stride = w.strides[1];
      at[static_cast<size_t>(t)] = from % stride * line + from / stride * pixel;
    }
    return at;
  }
};

/// The range of n positions, `stride` apart from `first` on, that lie in a line of `size` pixels.
inline std::pair<int64_t, int64_t> positions_inside(int64_t size, int64_t first, int64_t stride, int64_t n) {
  const int64_t low = std::clamp<int64_t>(first >= 0 ? 0 : (-first + stride - 1) / stride, 0, n);
  return {low, std::clamp<int64_t>(first >= size ? 0 : (size - 1 - first) / stride + 1, low, n)};
}

}  // namespace moka::devices::cpu
