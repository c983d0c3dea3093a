// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Convolutions with adjacent pixels in a vector, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

struct Narrow {
  int64_t lanes;  ///< floats per vector
  int64_t block;  ///< channels per block
  int64_t most;   ///< most output channels per call

  /// Splits a block of channels into one array per channel: to[c * step + p] = from[p * block + c].
  void (*split)(const float* from, int64_t pixels, float* to, int64_t step);

  /// Adds to sums[o * step + p], for o < outs <= most and p < pixels, the sum over lines i and taps t of
  /// lines[i][p + t * dilation] * w[(i * taps + t) * outs + o]. `pixels` is a whole
  /// number of vectors.
  void (*add)(const float* const* lines, int64_t count, int64_t taps, int64_t dilation, const float* w, int64_t outs,
              int64_t pixels, float* sums, int64_t step);

  /// y[o * step + p] = bias[o] + the sum over all channels of pixel p times w[o], for o < outs and p < pixels. x has
  /// blocks of channels, x_step apart, and w is [outs][blocks][block]. The order of a sum does not depend on `pixels`.
  void (*dots)(const float* x, int64_t x_step, int64_t blocks, const float* w, int64_t outs, const float* bias,
               int64_t pixels, float* y, int64_t step);
};

/// The table for this processor.
const Narrow& narrow();

const Narrow& narrow_base();
const Narrow& narrow_avx2();
const Narrow& narrow_avx512();

}  // namespace moka::devices::cpu::vector
