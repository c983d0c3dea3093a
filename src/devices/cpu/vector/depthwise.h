// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Depthwise convolutions, and convolutions whose groups lie inside a block, on blocked layouts. Compiled once for each
/// instruction set.
namespace moka::devices::cpu::vector {

/// The window along one axis of an image, with `pad` zeros before the image.
struct DepthwiseAxis {
  int64_t in, out, taps, stride, dilation, pad;
};

/// Every sum begins with the bias and adds the taps row by row. Taps on padding are skipped.
struct Depthwise {
  int64_t block;  ///< channels per block
  int64_t lanes;  ///< most channels per group

  struct Call {
    DepthwiseAxis down, across;
    int64_t group;        ///< channels per group: 1, or with 3 taps across any divisor of `lanes`
    const float* x;       ///< a block of channels
    const float* weight;  ///< [down.taps][channel of the group][across.taps][block]
    const float* bias;    ///< `block` values
    const float* limits;  ///< least and greatest result, which leave NaN alone; nullptr: none
    int64_t top, bottom;  ///< computes rows [top, bottom) of the result
    float* y;             ///< row `top` of the result
  };
  /// Groups of more than one channel need depthwise_builds_in(call.across).
  void (*rows)(const Call& call);
};

/// Whether the window has specialized code: 3, 5 or 7 adjacent taps with stride 1 or 2. Other windows are slower.
inline bool depthwise_builds_in(const DepthwiseAxis& across) {
  return (across.taps == 3 || across.taps == 5 || across.taps == 7) && across.dilation == 1 && across.stride <= 2;
}

/// The table for this processor.
const Depthwise& depthwise();

const Depthwise& depthwise_base();
const Depthwise& depthwise_avx2();
const Depthwise& depthwise_avx512();

}  // namespace moka::devices::cpu::vector
