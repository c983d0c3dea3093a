// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// What only training computes: gradients and steps of optimizers. Compiled once for each instruction set.
namespace moka::devices::cpu::vector {

struct Gradients {
  int64_t block;  ///< channels per block

  /// y[i] = dy[i] where low < x[i] < high, else 0. An infinite `high` does not count. y may be dy.
  void (*clamp)(const float* x, const float* dy, float low, float high, float* y, int64_t n);

  /// Pixels of a block of channels of a normalization.
  struct Norm {
    const float* x;
    const float* dy;
    int64_t pixels;
    const float* mean;   ///< of each channel
    const float* scale;  ///< of each channel
    float* dx;           ///< dy * scale; may be dy
    float* sums;         ///< adds the sum of dy of each channel, then that of dy * (x - mean)
  };
  void (*norm)(const Norm& call);

  /// A row of results of a pool of a block of channels. The sums of dx grow.
  struct Pool {
    const float* x;       ///< the first line that the windows read
    const float* dy;      ///< the row
    float* dx;            ///< the line of x
    int64_t slices;       ///< that the windows read
    int64_t slice;        ///< floats from slice to slice
    int64_t lines;        ///< of a slice that the windows read
    int64_t line;         ///< floats from line to line
    int64_t in;           ///< pixels of a line
    int64_t taps;         ///< of the window along a line
    int64_t stride, pad;  ///< pad: pixels before the line
    bool inside;          ///< averages: divides by the pixels inside the line only, else by `taps`
    float over;           ///< averages: the number of lines to divide by
    int64_t out;          ///< pixels of the row
  };
  /// Adds to the first largest element of each window, or the last NaN.
  void (*max_pool)(const Pool& call);
  void (*avg_pool)(const Pool& call);

  /// Rows of results of a depthwise convolution of a block of channels, and lines of its window.
  struct Depthwise {
    const float* x;                       ///< the line that the first line of the window reads for the first row
    const float* dy;                      ///< the first row
    int64_t rows;                         ///< with the same lines of the window
    int64_t x_row;                        ///< floats from the lines of a row to those of the next row
    int64_t lines;                        ///< of the window
    int64_t line;                         ///< floats from line to line
    int64_t taps, stride, dilation, pad;  ///< along a row; pad: pixels before the line
    int64_t in, out;                      ///< pixels of a line and of a row
    float* sums;                          ///< [line][tap][channel], which grow
  };
  void (*depthwise)(const Depthwise& call);

  /// Improves n weights as moka_sgd_step does. Results may be in the place of what they replace.
  void (*sgd)(const float* weight, const float* gradient, const float* velocity, float rate, float momentum,
              float* new_weight, float* new_velocity, int64_t n);

  struct Adam {
    float beta_1, rest_1, beta_2, rest_2;  ///< rest: 1 - beta
    float rate, scale, epsilon;            ///< rate: with the correction of the first mean; scale: of the root
  };
  /// Improves n weights as moka_adam_step does. kept: the two means. Results may be in the place of what they replace.
  void (*adam)(const Adam& numbers, const float* weight, const float* gradient, const float* const* kept,
               float* new_weight, float* const* new_kept, int64_t n);
};

/// The table for this processor.
const Gradients& gradients();

const Gradients& gradients_base();
const Gradients& gradients_avx2();
const Gradients& gradients_avx512();

}  // namespace moka::devices::cpu::vector
