// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Convolutions on blocked layouts whose taps are lines of pixels, such as pointwise (1 x 1) ones. Compiled once for
/// each instruction set.
namespace moka::devices::cpu::vector {

/// Every sum begins with the bias and adds the channels of each tap in order. A single pixel is summed in another
/// order.
struct Pointwise {
  int64_t block;                             ///< channels per block
  int64_t lanes;                             ///< channels per vector; a panel has up to three vectors, two are fastest
  int64_t pixels;                            ///< pixels per tile; multiples of this are fastest
  int64_t half;                              ///< channels of half a vector if a panel may end with one; else 0
  static constexpr int64_t kLineBytes = 64;  ///< of the cache
  static constexpr int64_t kAtFirst = 0;

  struct Call {
    const float* x;  ///< the first pixel of the first block of channels
    int64_t x_step;  ///< floats from block to block
    int64_t in;      ///< input channels
    int64_t taps = 1;
    const int64_t* tap_at = &kAtFirst;  ///< floats from x to the first pixel that each tap reads
    const float* weight;                ///< a panel: [taps][in][width]
    /// If not null, the first tile of pixels widens the panel from here to `widened`, which `weight` points to. Must be
    /// null where the instruction set does not convert float16.
    const uint16_t* halves;
    float* widened;
    int64_t width;        ///< output channels of the panel, whole vectors
    int64_t used;         ///< channels from this one on are set to zero
    bool twice;           ///< the last vector of weights and bias holds half a vector of channels, twice
    const float* bias;    ///< `width` values
    bool add = false;     ///< the sums begin with what y holds, not with the bias
    const float* limits;  ///< least and greatest result, which leave NaN alone; nullptr: none
    int64_t pixels;
    float* y;  ///< overlaps neither x nor the weights
    int64_t y_step;
    const void* ahead;    ///< memory that is read next, usually the next panel
    int64_t ahead_lines;  ///< how many cache lines of it to prefetch for each input channel of each tap
  };
  void (*multiply)(const Call&);
};

/// The table for this processor.
const Pointwise& pointwise();

const Pointwise& pointwise_base();
const Pointwise& pointwise_avx2();
const Pointwise& pointwise_avx512();

}  // namespace moka::devices::cpu::vector
