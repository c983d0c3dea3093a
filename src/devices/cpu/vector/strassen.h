#pragma once

#include <cstdint>

/// Products of fp32 matrices cut into quarters, of which seven are multiplied and not eight (Strassen's way, with
/// Winograd's fewer sums), compiled once for each instruction set:
///
///   s1 = a21 + a22   s2 = s1 - a11   s3 = a21 - a11   s4 = a12 - s2
///   t1 = b12 - b11   t3 = b12 - b22   t2 = b11 - t3   t4 = b21 - t2
///   u = a11 b11 + s2 t2, v = u + s3 t3
///   c11 = a11 b11 + a12 b21   c12 = u + s1 t1 + s4 b22   c21 = v + a22 t4   c22 = v + s1 t1
///
/// An error is no longer relative to its own row and column but to the larger of the two that are added.
namespace moka::devices::cpu::vector {

constexpr int kStrassenSums = 4;       // of a, and of b
constexpr int64_t kStrassenRows = 32;  // of a quarter, at least

/// A part of the depth of a product of some rows and two panels of vector/gemm.h.
struct StrassenPart {
  int64_t rows, depth;  ///< of a quarter; rows >= kStrassenRows
  const float* a;       ///< a11, and a12 behind its rows
  int64_t a_step;       ///< of rows
  int64_t a_lower;      ///< to a21 and a22
  const float* s;       ///< s1 to s4, dense, one after the other
  const float* b;       ///< b11, a part of a panel, and b21 behind it
  int64_t b_right;      ///< to b12 and b22
  float* t;             ///< room for kStrassenSums quarters of b
  float* c;             ///< c11, and c12 behind its rows
  int64_t c_step, c_lower;
  bool add;                    ///< to what is in c
  const float* bias;           ///< of both panels, added too; or null
  float* instead;              ///< of the first row of c21 and c22, which is not written; or null
  const float* ahead;          ///< what will be read next, `lines` of 16 floats
  int64_t ahead_right, lines;  ///< and as many there
};

struct Strassen {
  int64_t panel;  ///< columns
  /// A row of a11 and, `right` floats behind it, of a12, n each, and one of a21 and a22: s1 to s4 are written `step`
  /// apart. Adds the squares of both rows to squares[0] and squares[1].
  void (*left)(const float* upper, const float* lower, int64_t right, int64_t n, float* s, int64_t step,
               float* squares);
  void (*multiply)(const StrassenPart& part);
};

/// For this processor, with the panels of gemm().
const Strassen& strassen();

const Strassen& strassen_base();
const Strassen& strassen_avx2();
const Strassen& strassen_avx512();

}  // namespace moka::devices::cpu::vector
