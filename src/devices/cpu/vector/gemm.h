// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Products of fp32 matrices (GEMM), compiled for each instruction set.
///
/// The right-hand matrix is packed first, into panels of `panel` columns. Left-hand rows are read as they are:
///
///   const Gemm& g = gemm();
///   std::vector<float> panels(packed_count(g, depth, columns));
///   g.pack(b, columns, 1, depth, columns, panels.data(), nullptr);       // b is row-major [depth, columns]
///   g.multiply(a, depth, panels.data(), rows, columns, depth, c, columns, bias, false);
///
/// Inside, a tile of `rows` by `panel` sums stays in registers (the register block) while it runs over the depth.
namespace moka::devices::cpu::vector {

/// Every element is one sum in the order of the depth, so results do not depend on how rows and columns are divided
/// among calls.
struct Gemm {
  int64_t lanes;  ///< floats per vector
  int64_t panel;  ///< columns per panel, whole vectors
  int64_t rows;   ///< rows per tile; multiples of this are fastest
  int64_t depth;  ///< most depth of a panel that all rows are multiplied by before the next part

  /// Packs b, whose element (k, j) is b[k * row_step + j * column_step], into packed_count() floats. Panel p begins at
  /// p * panel * depth and holds its columns of row 0, then of row 1, and so on. The last panel may be narrower and is
  /// padded with zeros to whole vectors. `squares` gets the sum of squares of each column, padded likewise; or null.
  void (*pack)(const float* b, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns, float* to,
               float* squares);

  /// Packs one panel of `wide` dense columns, `column_step` apart, padded with zeros to `padded` columns.
  void (*pack_panel)(const float* b, int64_t column_step, int64_t depth, int64_t wide, int64_t padded, float* to,
                     float* squares);

  /// c[i * c_step + j] = bias[j] + sum over k of a[i * a_step + k] * b[k][j]. A null bias is 0. With `add` the result
  /// is added to c. `b` points to any panel. depth >= 1; c must not overlap the other arrays.
  void (*multiply)(const float* a, int64_t a_step, const float* b, int64_t rows, int64_t columns, int64_t depth,
                   float* c, int64_t c_step, const float* bias, bool add);

  /// Adds the product of rows of blocked channels and one panel to c. Each row consists of parts of `part` values that
  /// are `part_step` apart; the last part may be shorter. `columns` is a whole number of vectors.
  void (*multiply_parts)(const float* a, int64_t a_step, int64_t part, int64_t part_step, const float* b, int64_t rows,
                         int64_t columns, int64_t depth, float* c, int64_t c_step);

  /// As multiply, with a packed matrix of float16. `widened` is scratch memory of widened() floats. Null where the
  /// instruction set does not convert float16.
  void (*multiply_halves)(const float* a, int64_t a_step, const uint16_t* b, int64_t rows, int64_t columns,
                          int64_t depth, float* c, int64_t c_step, const float* bias, bool add, float* widened);

  int64_t widened() const { return panel * depth; }
};

/// The table for this processor, with panels of two vectors.
const Gemm& gemm();
/// With panels of two or three vectors, whichever is faster for this number of columns.
const Gemm& gemm_for(int64_t columns);
/// The number of floats of a packed matrix.
int64_t packed_count(const Gemm& g, int64_t depth, int64_t columns);

const Gemm& gemm_base(bool wide = false);
const Gemm& gemm_avx2(bool wide = false);
const Gemm& gemm_avx512(bool wide = false);

}  // namespace moka::devices::cpu::vector
