// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Convolutions whose taps are lines of pixels, from row-major to row-major channels. Vectors hold adjacent pixels.
/// Compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// Every sum begins with the bias and adds the channels of each tap in order. The last pixels that fill no vector may
/// be summed in another order.
struct Lines {
  int64_t lanes;                         ///< pixels per vector
  int64_t least;                         ///< output channels of a panel, at least
  int64_t rows;                          ///< output channels of a panel, at most
  int64_t pixels;                        ///< pixels per tile; multiples of this are fastest
  int64_t few;                           ///< up to so many last pixels, and at least two, may be in `last`
  static constexpr int64_t kSlack = 16;  ///< floats behind the weights and behind x that may be read

  struct Call {
    float* x;             ///< the first pixel of the first channel; only written with a `source`
    int64_t x_step;       ///< floats from channel to channel
    const float* source;  ///< if not null, pixels that fill vectors are read here and copied to x; only with one tap
    int64_t source_step;  ///< floats from channel to channel
    const float* last;    ///< if not null, [in][the last pixels, which fill no vector]; only with one tap
    int64_t in;           ///< input channels
    int64_t taps;
    const int64_t* tap_at;  ///< floats from x to the first pixel that each tap reads
    const float* weight;    ///< a panel: [taps][in][rows], followed by the next panel
    int64_t rows;           ///< output channels of the panel
    const float* bias;      ///< `rows` values; nullptr: the sums begin with what y holds
    const float* added;     ///< if not null, as y: what is added to the sums
    const float* limits;    ///< least and greatest result, which leave NaN alone; nullptr: none
    int64_t pixels;
    float* y;        ///< overlaps neither x nor the weights
    int64_t y_step;  ///< floats from channel to channel
  };
  void (*multiply)(const Call&);
  /// Copies n values that are two floats apart.
  void (*copy_every_second)(const float* from, int64_t n, float* to);
};

/// The table for this processor.
const Lines& lines();

const Lines& lines_base();
const Lines& lines_avx2();
const Lines& lines_avx512();

}  // namespace moka::devices::cpu::vector
