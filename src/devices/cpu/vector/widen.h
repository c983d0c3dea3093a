// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Widens packed integers and sparse float16 to floats, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// Rows of a panel of integers, or of indices into tables: `depth` rows of `width` codes, one to three vectors.
struct CodePanel {
  static constexpr int64_t kVectors = 3, kEntries = 16;  ///< vectors at most; entries of a table
  const uint8_t* codes;
  int bits;  ///< of a code: 1, 2, 4 or 8. A byte holds the codes of 8 / bits rows, the first one in its lowest bits
  bool is_signed;  ///< integers without tables
  int64_t depth, width;
  int64_t first;        ///< the number of row 0, a multiple of 8 / bits, among the rows that `scale` holds for
  const float* scale;   ///< [group of rows][width]; nullptr: ones
  const float* offset;  ///< like `scale`; nullptr: zeros
  int64_t block;        ///< rows of a group
  bool rounds;          ///< to float16, before `factor`
  const float* factor;  ///< [width], for all rows; nullptr: ones
  /// The table of each vector of indices; the rest is ignored. The entries repeat for indices of fewer than 4 bits.
  /// nullptr: integers of 8 bits, which have scales.
  const float* tables[kVectors];
  const float* row_tables;  ///< [row][kEntries]: a table for each row, instead of `tables`; nullptr: none
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
  /// Writes (v - offset) * scale * factor of each element of the panel. v is its code, or its entry of the table.
  void (*codes)(const CodePanel& panel, float* to);
  /// Null where the instruction set does not convert float16.
  void (*masked)(const MaskPanel& panel, float* to);
};

/// The table for this processor.
const Widen& widen();

const Widen& widen_base();
const Widen& widen_avx2();
const Widen& widen_avx512();

}  // namespace moka::devices::cpu::vector
