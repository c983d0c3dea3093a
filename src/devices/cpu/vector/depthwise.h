#pragma once

#include <cstdint>

/// Convolutions of every channel, or of groups inside a block, with their own taps on blocked layouts, compiled once
/// for each instruction set.
namespace moka::devices::cpu::vector {

/// Along one axis of an image; `pad` zeros in front.
struct DepthwiseAxis {
  int64_t in, out, taps, stride, dilation, pad;
};

/// Every sum begins with the bias and goes on row by row of the taps; taps on padding are left out.
struct Depthwise {
  int64_t block;  ///< channels of a block
  int64_t lanes;  ///< the most channels of a group

  struct Call {
    DepthwiseAxis down, across;
    int64_t group;        ///< channels that are mixed with each other, 1 or with 3 taps across; divides `lanes`
    const float* x;       ///< of a block of channels
    const float* weight;  ///< down.taps x group (channels of x) x across.taps x block
    const float* bias;    ///< `block` values
    const float* limits;  ///< least and largest results; NaN stays. nullptr: none
    int64_t top, bottom;  ///< rows of the result that are made
    float* y;             ///< the row `top`
  };
  /// Groups of more than one channel: only where `depthwise_builds_in(call.across)`.
  void (*rows)(const Call& call);
};

/// 3, 5 or 7 taps next to each other, at every pixel or every other one: what is fastest.
inline bool depthwise_builds_in(const DepthwiseAxis& across) {
  return (across.taps == 3 || across.taps == 5 || across.taps == 7) && across.dilation == 1 && across.stride <= 2;
}

/// For this processor.
const Depthwise& depthwise();

const Depthwise& depthwise_base();
const Depthwise& depthwise_avx2();
const Depthwise& depthwise_avx512();

}  // namespace moka::devices::cpu::vector
