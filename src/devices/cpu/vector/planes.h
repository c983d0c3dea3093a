#pragma once

#include <cstdint>

/// Convolutions of few channels that lie in planes, to blocked channels; compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// Every sum goes on in the order of the taps, whatever pixels a call is given.
struct Planes {
  int64_t block;   ///< channels of a block
  int64_t lanes;   ///< channels of a vector; a panel has one or two of them
  int64_t pixels;  ///< that are made at once: multiples of it are fastest

  struct Call {
    const float* x;       ///< of the first pixel
    int64_t stride;       ///< from pixel to pixel
    const int64_t* taps;  ///< where each tap's value is, from x
    int64_t count;        ///< of taps
    const float* weight;  ///< rows of `width` values, one for each tap
    int64_t width;        ///< of this panel, whole vectors
    int64_t used;         ///< values behind them are zeros, whatever x holds
    bool add;             ///< to what is in y
    const float* bias;    ///< `width` values, added last: products are not rounded to its size; or null
    const float* limits;  ///< least and largest results; NaN stays. nullptr: none
    int64_t pixels;
    float* y;
    int64_t y_step;  ///< from block to block
  };
  void (*multiply)(const Call&);
};

/// For this processor.
const Planes& planes();

const Planes& planes_base();
const Planes& planes_avx2();
const Planes& planes_avx512();

}  // namespace moka::devices::cpu::vector
