// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// Products of a few rows and a constant matrix that is read as it is stored (GEMV with quantized weights), compiled
/// once for each instruction set.
namespace moka::devices::cpu::vector {

/// How elements are stored. Those of less than a byte are packed from the lowest bits up. The last three are indices
/// into a table.
enum class Encoding : uint8_t { fp32, fp16, int8, uint8, int4, uint4, table1, table2, table4 };

constexpr int bits_of(Encoding c) {
  switch (c) {
    case Encoding::fp32: return 32;
    case Encoding::fp16: return 16;
    case Encoding::int4:
    case Encoding::uint4:
    case Encoding::table4: return 4;
    case Encoding::table2: return 2;
    case Encoding::table1: return 1;
    default: return 8;
  }
}

/// Elements per chunk, the smallest unit that is read. Rows of sub-byte elements are padded to whole chunks.
constexpr int64_t chunk_of(Encoding c) { return bits_of(c) < 8 ? 512 / bits_of(c) : 16; }

/// A stored matrix. Element = (stored value - offset) * scale. Groups of `group_rows` rows share scales. A group has
/// `groups` scales, each for depth / groups consecutive elements of a row. Offsets are grouped in the same way.
struct Rows {
  Encoding encoding = Encoding::fp32;
  const std::byte* data = nullptr;
  int64_t step = 0;               ///< bytes from row to row
  int64_t depth = 0;              ///< elements per row; whole chunks for sub-byte elements
  const float* scale = nullptr;   ///< or null; 16 entries past the last must be readable
  const float* offset = nullptr;  ///< or null, like `scale`; only with scales and without tables
  int64_t group_rows = 1, groups = 1;
  const float* table = nullptr;  ///< 16 values for every `table_rows` rows; shorter tables are repeated to fill them
  int64_t table_rows = 1;
  bool in_cache = false;  ///< the matrix is read repeatedly, so it is in a cache
};

/// Whether a row may have this number of groups of scales. Blocks must be whole chunks, or for sub-byte elements a
/// power of two of blocks per chunk.
constexpr bool takes_groups(Encoding c, int64_t depth, int64_t groups) {
  if (groups == 1) return true;
  const int64_t block = depth / groups, chunk = chunk_of(c);
  if (block % chunk == 0) return true;
  return bits_of(c) < 8 && chunk % block == 0 && 16 % (chunk / block) == 0;
}

struct RowLoops {
  /// Copies x to the order that `product` reads, with zeros from `depth` to `padded`, which is Rows::depth. Only
  /// sub-byte elements need another order.
  void (*arrange)(Encoding encoding, const float* x, int64_t depth, int64_t padded, float* to);
  /// y[r * y_step + m] = x[r] times row m of the matrix, plus bias[m] if not null, for m in [first, last) and r in
  /// [0, count), count <= 4. Sums do not depend on the range.
  void (*product)(const Rows& w, int64_t first, int64_t last, const float* x, int64_t x_step, int64_t count,
                  const float* bias, float* y, int64_t y_step);
};

/// The table for this processor.
const RowLoops& row_loops();

const RowLoops& row_loops_base();
const RowLoops& row_loops_avx2();
const RowLoops& row_loops_avx512();

}  // namespace moka::devices::cpu::vector
