// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Sums of outer products over pixels, of which gradients of weights consist. Compiled once for each instruction set.
namespace moka::devices::cpu::vector {

struct Outer {
  int64_t block;   ///< channels per block
  int64_t rows;    ///< most rows of a tile
  int64_t blocks;  ///< most blocks of a tile

  /// Adjacent pixels.
  struct Run {
    int64_t x, y;  ///< floats from Call::x and Call::y to the first pixel
    int64_t count;
  };

  struct Call {
    const Run* runs;
    int64_t run_count;
    const float* x;      ///< a pixel has `rows` adjacent numbers
    int64_t x_step;      ///< floats from pixel to pixel
    int64_t rows;        ///< from 1 to Outer::rows
    const float* y;      ///< a pixel has `blocks` blocks
    int64_t y_step;      ///< floats from pixel to pixel
    int64_t y_block;     ///< floats from block to block
    int64_t blocks;      ///< from 1 to Outer::blocks
    float* sums;         ///< [row][block][channel]
    int64_t sums_row;    ///< floats from row to row
    int64_t sums_block;  ///< floats from block to block
  };
  /// Adds to sums[r][b][c] the sum of x[r] * y[b][c] over all pixels, in their order.
  void (*add)(const Call& call);
};

/// The table for this processor.
const Outer& outer();

const Outer& outer_base();
const Outer& outer_avx2();
const Outer& outer_avx512();

}  // namespace moka::devices::cpu::vector
