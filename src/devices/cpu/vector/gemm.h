#pragma once

#include <cstdint>

/// Products of fp32 matrices, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// Every element is one sum in the order of `depth`, however rows and columns are divided among calls.
struct Gemm {
  int64_t lanes;  ///< floats of a vector
  int64_t panel;  ///< columns of a panel, whole vectors
  int64_t rows;   ///< that are computed at once: multiples of it are fastest

  /// b[k * row_step + j * column_step] as panels: of each the columns of k = 0, then of k = 1, ... The last panel may
  /// be narrower, and is filled with zeros to whole vectors. Panel p begins at p * panel * depth; all together they are
  /// `packed_count` floats. `squares`: the sum of each column's squares, in whole vectors; or null.
  void (*pack)(const float* b, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns, float* to,
               float* squares);

  /// One such panel of `wide` columns that lie `column_step` apart, each dense, filled with zeros to `padded` ones,
  /// whole vectors.
  void (*pack_panel)(const float* b, int64_t column_step, int64_t depth, int64_t wide, int64_t padded, float* to,
                     float* squares);

  /// c[i * c_step + j] = bias[j], or 0 where it is null, + sum over k of a[i * a_step + k] * b[k][j], added to what is
  /// there with `add`. `b` are panels, which a call may begin with any of. depth >= 1; c overlaps nothing else.
  void (*multiply)(const float* a, int64_t a_step, const float* b, int64_t rows, int64_t columns, int64_t depth,
                   float* c, int64_t c_step, const float* bias, bool add);

  /// Adds to c the products of one panel of `columns`, whole vectors, and of rows of which `part` values lie together
  /// and the next ones `part_step` behind them: blocked channels of an image. The last part may be shorter.
  void (*multiply_parts)(const float* a, int64_t a_step, int64_t part, int64_t part_step, const float* b, int64_t rows,
                         int64_t columns, int64_t depth, float* c, int64_t c_step);
};

/// For this processor, with panels of two vectors.
const Gemm& gemm();
/// With panels of two or of three vectors, whichever is faster for so many columns.
const Gemm& gemm_for(int64_t columns);
/// Floats of a packed matrix.
int64_t packed_count(const Gemm& g, int64_t depth, int64_t columns);

const Gemm& gemm_base(bool wide = false);
const Gemm& gemm_avx2(bool wide = false);
const Gemm& gemm_avx512(bool wide = false);

}  // namespace moka::devices::cpu::vector
