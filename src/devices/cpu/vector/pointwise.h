#pragma once

#include <cstdint>

/// Convolutions of one tap on blocked layouts, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// Every sum begins with the bias and goes on in the order of the channels, unless there is one pixel.
struct Pointwise {
  int64_t block;   ///< channels of a block
  int64_t lanes;   ///< channels of a vector; a panel has up to three of them, two are best
  int64_t pixels;  ///< that are made at once: multiples of it are fastest
  int64_t half;    ///< channels of half a vector, where a panel may end with one; else 0

  struct Call {
    const float* x;       ///< the first pixel of the first group of channels
    int64_t x_step;       ///< from group to group
    int64_t in;           ///< channels
    const float* weight;  ///< of a panel: rows of `width` values, one for each channel
    int64_t width;        ///< whole vectors
    int64_t used;         ///< values behind them are zeros, whatever x holds
    bool twice;           ///< the last vector of weights and bias holds half as many channels, twice
    const float* bias;    ///< `width` values
    const float* limits;  ///< least and largest results; NaN stays. nullptr: none
    int64_t pixels;
    float* y;  ///< overlaps neither x nor the weights
    int64_t y_step;
    const float* ahead;  ///< what will be read next, in the first place the next panel
  };
  void (*multiply)(const Call&);
};

/// For this processor.
const Pointwise& pointwise();

const Pointwise& pointwise_base();
const Pointwise& pointwise_avx2();
const Pointwise& pointwise_avx512();

}  // namespace moka::devices::cpu::vector
