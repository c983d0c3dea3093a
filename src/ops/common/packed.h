// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ir/op_def.h"

/// Compressed weights: packed integers, bit masks, and parameters that apply to blocks of a tensor.
namespace moka::ops {

using namespace ir;

/// Unpacks elements [first, first + n) of unsigned integers of 1, 2, 3, 4, 6 or 8 bits, packed from the lowest bit up,
/// to bytes. Reads no byte past the last element.
void unpack_bits(const uint8_t* packed, int bits, int64_t first, int64_t n, uint8_t* out);

/// Counts the set bits among bits [first, first + n) of a mask, whose bytes begin with the lowest bit.
int64_t count_bits(const uint8_t* mask, int64_t first, int64_t n);

/// Calls fn(position) for each set bit among [first, first + n), in ascending order.
template <class Fn>
void for_each_set_bit(const uint8_t* mask, int64_t first, int64_t n, Fn fn) {
  const int64_t end = first + n;
  for (int64_t at = first; at < end;) {
    const int64_t start = at & ~int64_t{7};
    uint64_t word = 0;
    const int64_t bytes = (end + 7) / 8 - start / 8;
    for (int64_t b = 0; b < 8 && b < bytes; b++) word |= static_cast<uint64_t>(mask[start / 8 + b]) << (8 * b);
    word &= ~uint64_t{0} << (at - start);
    if (end - start < 64) word &= (uint64_t{1} << (end - start)) - 1;
    for (; word != 0; word &= word - 1) fn(start + __builtin_ctzll(word));
    at = start + 64;
  }
}

/// Converts elements [first, first + n) of any numeric tensor to floats, and back. Storing rounds to nearest, and
/// integers saturate.
void load_floats(const TensorView& t, int64_t first, int64_t n, float* out);
void store_floats(const TensorView& t, int64_t first, int64_t n, const float* in);

/// Iterates over a dense tensor in row-major order, in runs of elements that share one entry of a parameter tensor of
/// shape `groups`; each groups[k] divides shape[k], so that an entry covers a block. Precondition: equal ranks,
/// checked.
class BlockRuns {
 public:
  BlockRuns(const Shape& shape, const Shape& groups);
  /// The entry for the current position.
  int64_t group() const { return group_; }
  /// How many elements from the current position on use the same entry.
  int64_t left() const { return left_; }
  /// Advances by n <= left() elements.
  void advance(int64_t n) {
    left_ -= n;
    if (left_ == 0) next();
  }

 private:
  void next();
  int rank_ = 0;     ///< number of axes up to the last one with several groups
  int64_t run_ = 0;  ///< elements per run
  int64_t left_ = 0, group_ = 0;
  int64_t size_[kMaxRank] = {}, block_[kMaxRank] = {}, step_[kMaxRank] = {}, at_[kMaxRank] = {};
};

/// Checks that every size of `groups` divides that of `shape`.
Status check_blocks(const OpCall& call, std::string_view param, const Shape& shape, const Shape& groups);

/// Computes (element - offset) * scale in float for `n` elements from the position of `runs` on. Element i of `data`
/// becomes element i of `out`, beginning with `first`. `offsets` may be null.
void shift_and_scale(const TensorView& out, const TensorView& data, int64_t first, int64_t n, BlockRuns& runs,
                     const float* scales, const float* offsets);

}  // namespace moka::ops
