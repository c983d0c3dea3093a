// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Strassen products of fp32 matrices, in Winograd's form, compiled once for each instruction set. Both matrices are
/// cut into quarters, and seven products of sums of quarters replace the usual eight products of quarters:
///
///   s1 = a21 + a22   s2 = s1 - a11   s3 = a21 - a11   s4 = a12 - s2
///   t1 = b12 - b11   t3 = b12 - b22   t2 = b11 - t3   t4 = b21 - t2
///   u = a11 b11 + s2 t2, v = u + s3 t3
///   c11 = a11 b11 + a12 b21   c12 = u + s1 t1 + s4 b22   c21 = v + a22 t4   c22 = v + s1 t1
///
/// left() computes the sums s first. The first tile of multiply() computes the sums t while it reads b, and keeps them
/// in scratch memory for the other tiles. A long depth is done in parts (kernels/gemm_strassen.cpp):
///
///   for each row: strassen().left(a11 row, a21 row, depth, depth, s row, rows * depth, squares);
///   StrassenPart p{...};                 // fill in all fields; p.add = false for the first part of the depth
///   strassen().multiply(p);
///
/// The error of an element is relative to the larger of the two rows and columns that are added, not to its own. The
/// squares that left() sums show which rows differ too much in size.
namespace moka::devices::cpu::vector {

constexpr int kStrassenSums = 4;       // number of sums s of quarters of a, and of sums t of quarters of b
constexpr int64_t kStrassenRows = 32;  // rows of a quarter at least

/// A product of some rows and two panels of vector/gemm.h, over a part of the depth.
struct StrassenPart {
  int64_t rows, depth;  ///< size of a quarter; rows >= kStrassenRows
  const float* a;       ///< a11; a12 follows in the same rows
  int64_t a_step;       ///< floats from row to row of a
  int64_t a_lower;      ///< floats from a11 to a21, and from a12 to a22
  const float* s;       ///< s1 to s4, each dense, one after the other
  const float* b;       ///< b11, a part of the left panel; b21 follows it
  int64_t b_right;      ///< floats from b11 to b12, and from b21 to b22: the right panel
  /// The left and the right panel as float16, or null. multiply() then widens b11 and b21 into the scratch memory
  /// `widened`, which `b` points to, and b12 and b22 after them: b_right is the size of both. Not on the base
  /// instruction set.
  const uint16_t *halves, *halves_right;
  float* widened;
  float* t;             ///< scratch memory for kStrassenSums quarters of b
  float* c;             ///< c11; c12 follows in the same rows
  int64_t c_step;       ///< floats from row to row of c
  int64_t c_lower;      ///< floats from c11 to c21, and from c12 to c22
  bool add;             ///< add to c
  const float* bias;    ///< bias of both panels, added too; or null
  float* instead;       ///< memory that gets the first row of c21 and c22 instead of c; or null
  const float* ahead;   ///< the `lines` cache lines to prefetch, because they are read next
  int64_t ahead_right;  ///< floats from `ahead` to as many lines of the right panel
  int64_t lines;
};

struct Strassen {
  int64_t panel;  ///< columns of a panel
  /// Computes one row of s1 to s4, which are `step` floats apart. `upper` is the row of a11, whose n floats are
  /// followed by those of a12 at upper + right. `lower` is the row of a21 and a22. Adds the sum of squares of the upper
  /// row to squares[0] and that of the lower row to squares[1].
  void (*left)(const float* upper, const float* lower, int64_t right, int64_t n, float* s, int64_t step,
               float* squares);
  void (*multiply)(const StrassenPart& part);
};

/// The table for this processor, with the panels of gemm().
const Strassen& strassen();

const Strassen& strassen_base();
const Strassen& strassen_avx2();
const Strassen& strassen_avx512();

}  // namespace moka::devices::cpu::vector
