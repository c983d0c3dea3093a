// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Sums of doubles for classic models, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// The columns of a packed matrix form groups of this size, padded with zeros: [group][depth][kColumns].
constexpr int64_t kColumns = 32;
constexpr int64_t groups_of(int64_t columns) { return (columns + kColumns - 1) / kColumns; }

struct DoubleLoops {
  /// y[r * columns + i] = offset[i] + the sum over k of x[r * depth + k] * w[k, i], where `w` is packed. Null offset:
  /// zeros.
  void (*products)(const double* x, int64_t rows, int64_t depth, const double* w, int64_t columns, const double* offset,
                   double* y);
  /// y[r * columns + i] = the sum over k of (x[r * depth + k] - w[k, i])^2.
  void (*distances)(const double* x, int64_t rows, int64_t depth, const double* w, int64_t columns, double* y);
  /// y[r * columns + i] = offset[i] + the sum over k of x[r * depth + k] * w[i * depth + k], for few columns. A row's
  /// sum does not depend on the other rows.
  void (*dots)(const double* x, int64_t rows, int64_t depth, const double* w, int64_t columns, const double* offset,
               double* y);
  /// y[i] = exp(factor * y[i]), with a relative error of at most 1e-14. Results below 1e-307 become 0.
  void (*exponentials)(double* y, int64_t count, double factor);
  /// y[i] = 1 / (1 + exp(-x[i])).
  void (*logistics)(const double* x, double* y, int64_t count);
  /// y[i] = the sum over k of (x[k] - w[at[i] * depth + k])^2, for `count` of the rows of w.
  void (*distances_to)(const double* x, int64_t depth, const float* w, const int64_t* at, int64_t count, double* y);
  /// The first position of x in [first, count) with a number below `bound`, else count.
  int64_t (*next_below)(const float* x, int64_t first, int64_t count, float bound);
  /// Divides each row of x by its sum. A sum that is not positive gives equal results.
  void (*normalize)(const double* x, double* y, int64_t rows, int64_t columns);
  /// index[r] = the position of the largest number of a row, the first of equals. NaN never wins; if all are NaN, the
  /// position is 0.
  void (*largest)(const double* x, int64_t rows, int64_t columns, int64_t* index);
};

/// The table for this processor.
const DoubleLoops& double_loops();

/// The same without fused multiply-adds: products and distances are those of plain C++ to the last bit.
const DoubleLoops& exact_double_loops();

const DoubleLoops& double_loops_base();
const DoubleLoops& double_loops_avx2();
const DoubleLoops& double_loops_avx512();
const DoubleLoops& exact_double_loops_base();
const DoubleLoops& exact_double_loops_avx2();
const DoubleLoops& exact_double_loops_avx512();

}  // namespace moka::devices::cpu::vector
