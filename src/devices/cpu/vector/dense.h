// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Convolutions from blocked to blocked channels with any window. Compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// Every sum begins with the bias and adds the blocks of input channels in order, in each block the taps, and for each
/// tap the channels. So results do not depend on how pixels are divided among calls.
struct Dense {
  int64_t block;   ///< channels per block
  int64_t lanes;   ///< channels per vector; a panel has up to three vectors, two are fastest
  int64_t pixels;  ///< pixels per tile of two vectors; multiples of this are fastest

  struct Call {
    const float* x;         ///< the first block of channels
    int64_t x_step;         ///< floats from block to block
    int64_t in;             ///< input channels
    int64_t taps;           ///< of the window
    const int32_t* steps;   ///< floats from the first tap to each tap
    const int32_t* places;  ///< [tap][pixel]: floats from x to what the tap reads, or negative: padding
    int64_t pitch;          ///< pixels from tap to tap in `places`
    const int32_t* edges;   ///< for each pixel and the end, how many pixels before it have taps on padding
    const float* weight;    ///< a panel: [block of input channels][tap][channel][width]
    /// If not null, the first tile of pixels widens the panel from here to `widened`, which `weight` points to. Must be
    /// null where the instruction set does not convert float16.
    const uint16_t* halves;
    float* widened;
    const void* ahead;    ///< memory that is read next, usually the next panel; nullptr: none
    int64_t ahead_bytes;  ///< of each weight there
    int64_t width;        ///< output channels of the panel, whole vectors
    int64_t used;         ///< channels from this one on are set to zero
    const float* bias;    ///< `width` values; nullptr: adds to y
    const float* limits;  ///< least and greatest result, which leave NaN alone; nullptr: none
    int64_t pixels;
    float* y;  ///< overlaps neither x nor the weights
    int64_t y_step;
  };
  void (*multiply)(const Call&);
};

/// The table for this processor.
const Dense& dense();

const Dense& dense_base();
const Dense& dense_avx2();
const Dense& dense_avx512();

}  // namespace moka::devices::cpu::vector
