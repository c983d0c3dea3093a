// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Matrix products of 8-bit integers, exact in 32 bits, compiled for each instruction set with int8 dot products
/// (VNNI).
///
/// Activations are uint8 in rows of quads (four values). Weights are int8 in panels: for each tap and quad one vector
/// of 4-byte groups per `lanes` columns. A convolution passes one row pointer per tap.
namespace moka::devices::cpu::vector {

/// How sums become floats. Arrays have one entry per column, padded to whole vectors.
struct Int8Scaling {
  const int32_t* first;  ///< initial values of the sums
  const float* scale;    ///< result = sum * scale + shift
  const float* shift;
};

struct Int8Gemm {
  int64_t lanes;  ///< columns per vector
  int64_t panel;  ///< columns per panel, whole vectors
  int64_t rows;   ///< most rows of one call

  /// to[i * to_step + l] = round(x[i * lanes + l] * factor) - low, in [0, 255], for n values in all. A partial
  /// last vector writes only the values that exist.
  void (*quantize)(const float* x, int64_t n, float factor, int low, uint8_t* to, int64_t to_step);

  /// c[i * c_step + v * vector_step + l] = the scaled sum over taps t, quads q and bytes k of a[t * rows + i][4 q + k]
  /// times weight (t, 4 q + k) of column v * lanes + l. `weights` is a panel, and columns <= panel. With `part` only
  /// these columns of the last vector are stored, else the whole vector. Sums wrap.
  void (*multiply)(const uint8_t* const* a, int64_t rows, int64_t taps, int64_t quads, const int8_t* weights,
                   int64_t columns, bool part, const Int8Scaling& sums, float* c, int64_t c_step, int64_t vector_step);
};

/// The table for this processor; nullptr if it lacks the instructions.
const Int8Gemm* int8_gemm();

const Int8Gemm& int8_gemm_avxvnni();
const Int8Gemm& int8_gemm_avx512vnni();

}  // namespace moka::devices::cpu::vector
