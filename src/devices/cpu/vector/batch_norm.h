// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Parts of batch norms of mini-batches and of their gradients, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// Works on `count` numbers, of which number i belongs to lane i % kLanes. There is one value for each lane of a
/// center, of factors and of sums.
struct BatchNorm {
  static constexpr int kLanes = 16;

  /// Adds x - center and its square to sums and squares.
  void (*moments)(const float* x, int64_t count, const float* center, double* sums, double* squares);
  /// Adds dy, and dy * (x - center), to sums and products.
  void (*products)(const float* x, const float* dy, int64_t count, const float* center, double* sums, double* products);
  /// y = (x - center) * scale + shift. y may be x.
  void (*apply)(const float* x, int64_t count, const float* center, const float* scale, const float* shift, float* y);
  /// dx = dy * scale + (x - center) * slope + shift. dx may be x or dy.
  void (*gradient)(const float* x, const float* dy, int64_t count, const float* center, const float* scale,
                   const float* slope, const float* shift, float* dx);
};

/// The table for this processor.
const BatchNorm& batch_norm();

const BatchNorm& batch_norm_base();
const BatchNorm& batch_norm_avx2();
const BatchNorm& batch_norm_avx512();

}  // namespace moka::devices::cpu::vector
