#pragma once

#include <cstdint>

/// Products of 8-bit integers, exact in 32 bits, compiled for processors that have instructions for them.
namespace moka::devices::cpu::vector {

/// What makes floats of sums, one entry for each column, whole vectors of them.
struct ByteSums {
  const int32_t* first;  ///< where the sums begin
  const float* scale;    ///< result = sum * scale + shift
  const float* shift;
};

struct ByteProducts {
  int64_t lanes;  ///< columns of a vector
  int64_t panel;  ///< columns of a panel, whole vectors
  int64_t rows;   ///< most rows of one call

  /// to[i * to_step + l] = round(x[i * lanes + l] * factor) - low, in [0, 255], for n values in all; those of a last
  /// part of a vector only.
  void (*to_codes)(const float* x, int64_t n, float factor, int low, uint8_t* to, int64_t to_step);

  /// c[i * c_step + v * vector_step + l] = the sum over taps t, quads q and bytes k of a[t * rows + i][4 q + k] times
  /// the weight of column v * lanes + l. `weights` is a panel: for each tap and quad the columns, each 4 int8.
  /// `columns` <= panel: of the last vector only these are stored when `part`, else all. Sums wrap.
  void (*multiply)(const uint8_t* const* a, int64_t rows, int64_t taps, int64_t quads, const int8_t* weights,
                   int64_t columns, bool part, const ByteSums& sums, float* c, int64_t c_step, int64_t vector_step);
};

/// For this processor; nullptr when it has no such instructions.
const ByteProducts* bytes();

const ByteProducts& bytes_avxvnni();
const ByteProducts& bytes_avx512vnni();

}  // namespace moka::devices::cpu::vector
