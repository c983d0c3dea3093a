// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Average pooling of blocked channels. Compiled once for each instruction set.
namespace moka::devices::cpu::vector {

struct Average {
  int64_t block;  ///< channels per block

  struct Call {
    const float* x;       ///< the first line that the windows read
    int64_t slices;       ///< that the windows read
    int64_t slice;        ///< floats from slice to slice
    int64_t lines;        ///< of a slice that the windows read
    int64_t line;         ///< floats from line to line
    int64_t in;           ///< pixels of a line
    int64_t taps;         ///< of the window along a line
    int64_t stride, pad;  ///< pad: pixels before the line
    bool inside;          ///< divides by the pixels inside the line only, else by `taps`
    float over;           ///< the number of lines to divide by
    int64_t out;          ///< pixels of the result
    float* y;
  };
  void (*line)(const Call&);
};

/// The table for this processor.
const Average& average();

const Average& average_base();
const Average& average_avx2();
const Average& average_avx512();

}  // namespace moka::devices::cpu::vector
