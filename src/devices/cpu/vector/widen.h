#pragma once

#include <cstdint>

/// Widens packed integers and sparse float16 to floats, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// A panel of integers, or of indices into tables: `depth` rows of `width` bytes, one to three vectors.
struct BytePanel {
  static constexpr int64_t kVectors = 3, kEntries = 16;  ///< vectors at most; entries of a table
  const uint8_t* codes;
  bool is_signed;
  int64_t depth, width;
  int64_t first;                  ///< the number of row 0 among the rows that `scale` holds for
  const float* scale;             ///< [group of rows][width]
  const float* offset;            ///< like `scale`; nullptr: zeros
  int64_t block;                  ///< rows that share scales
  const float* tables[kVectors];  ///< of each vector of indices; the rest is ignored then. nullptr: integers
};

/// Vectors of a panel whose elements other than zero are float16 values, in order. Bit i % 8 of byte i / 8 of the mask
/// is set if element i has one.
struct MaskPanel {
  static constexpr int64_t kReadable = 64;  ///< bytes that may be read behind the last value
  const uint8_t* mask;
  const uint16_t* values;
  int64_t vectors;
};

struct Widen {
  int64_t lanes;  ///< floats per vector
  /// Writes (code - offset) * scale, or the entry of the table, of each element of the panel.
  void (*bytes)(const BytePanel& panel, float* to);
  /// Null where the instruction set does not convert float16.
  void (*masked)(const MaskPanel& panel, float* to);
};

/// The table for this processor.
const Widen& widen();

const Widen& widen_base();
const Widen& widen_avx2();
const Widen& widen_avx512();

}  // namespace moka::devices::cpu::vector
