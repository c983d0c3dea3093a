#pragma once

#include <cstddef>
#include <cstdint>

/// Products of a few rows with a constant matrix that is read as it is stored, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// How one element of a row is stored. Codes of less than a byte come lowest bits first.
enum class Code : uint8_t { fp32, fp16, int8, uint8, int4, uint4, table1, table2, table4, table8 };

constexpr int bits_of(Code c) {
  switch (c) {
    case Code::fp32: return 32;
    case Code::fp16: return 16;
    case Code::int4:
    case Code::uint4:
    case Code::table4: return 4;
    case Code::table2: return 2;
    case Code::table1: return 1;
    default: return 8;
  }
}

/// Elements of a chunk, the least that is read at once. Rows of codes of less than a byte are whole chunks.
constexpr int64_t chunk_of(Code c) { return bits_of(c) < 8 ? 512 / bits_of(c) : 16; }

/// Element = (value of the code - offset) * scale. A group of scales holds for `group_rows` rows, and its `groups`
/// entries each for depth / groups elements of a row; offsets likewise.
struct Rows {
  Code code = Code::fp32;
  const std::byte* data = nullptr;
  int64_t step = 0;               ///< bytes from row to row
  int64_t depth = 0;              ///< of a row, whole chunks for codes of less than a byte
  const float* scale = nullptr;   ///< or null; readable for 16 entries behind the last
  const float* offset = nullptr;  ///< or null, as `scale`; needs scales; not with tables
  int64_t group_rows = 1, groups = 1;
  const float* table = nullptr;  ///< of 16 values, 256 for table8, for each `table_rows` rows; shorter ones repeated
  int64_t table_rows = 1;
};

/// Whether scales in `groups` along a row can be read: blocks of whole vectors, or, for codes of less than a byte,
/// whole chunks or a power of two of blocks in each.
constexpr bool takes_groups(Code c, int64_t depth, int64_t groups) {
  if (groups == 1) return true;
  const int64_t block = depth / groups, chunk = chunk_of(c);
  if (block % chunk == 0) return true;
  return bits_of(c) < 8 && chunk % block == 0 && 16 % (chunk / block) == 0;
}

struct RowLoops {
  /// x in the order that `product` reads it: as it is but for codes of less than a byte. `padded`: Rows::depth, zeros
  /// behind `depth`.
  void (*arrange)(Code code, const float* x, int64_t depth, int64_t padded, float* to);
  /// y[r * y_step + m] = x[r] times row m, plus bias[m] where there is one; m in [first, last), r in [0, count), count
  /// 1 to 4. Sums do not depend on the range.
  void (*product)(const Rows& w, int64_t first, int64_t last, const float* x, int64_t x_step, int64_t count,
                  const float* bias, float* y, int64_t y_step);
};

/// For this processor.
const RowLoops& row_loops();

const RowLoops& row_loops_base();
const RowLoops& row_loops_avx2();
const RowLoops& row_loops_avx512();

}  // namespace moka::devices::cpu::vector
