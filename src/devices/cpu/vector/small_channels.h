// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Convolutions from few row-major channels to blocked channels, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// Sums add the taps in order, so results do not depend on how pixels are divided among calls.
struct SmallChannels {
  int64_t block;   ///< channels per block
  int64_t lanes;   ///< channels per vector; a panel has one or two vectors
  int64_t pixels;  ///< pixels per tile; multiples of this are fastest

  struct Call {
    const float* x;       ///< the first pixel
    int64_t stride;       ///< floats from pixel to pixel
    const int64_t* taps;  ///< offset of each tap from x
    int64_t count;        ///< number of taps
    const float* weight;  ///< [count][width]
    int64_t width;        ///< channels of this panel, whole vectors
    int64_t used;         ///< channels from this one on are set to zero
    bool add;             ///< add to y
    const float* bias;    ///< `width` values, added last so that small products are not rounded to its size; or null
    const float* limits;  ///< least and greatest result, which leave NaN alone; nullptr: none
    int64_t pixels;
    float* y;
    int64_t y_step;  ///< floats from block to block
  };
  void (*multiply)(const Call&);
};

/// The table for this processor.
const SmallChannels& small_channels();

const SmallChannels& small_channels_base();
const SmallChannels& small_channels_avx2();
const SmallChannels& small_channels_avx512();

}  // namespace moka::devices::cpu::vector
