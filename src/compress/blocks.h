// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compress/encoding.h"

namespace moka::compress {

/// How a tensor is divided: the number of blocks along each axis.
struct Blocks {
  Shape shape, counts;

  int64_t total() const;
  /// Calls `visit` with the begin, length and block of each run of neighbors that lie in one block, in order.
  template <class Visit>
  void each_run(const Visit& visit) const {
    int64_t split = -1, run = 1, elements = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (counts[axis] > 1) split = static_cast<int64_t>(axis);
    for (size_t axis = 0; axis < shape.size(); ++axis) elements *= shape[axis];
    if (split < 0) return visit(int64_t{0}, elements, int64_t{0});
    const auto last = static_cast<size_t>(split);
    for (size_t axis = last; axis < shape.size(); ++axis) run *= shape[axis];
    run /= counts[last];
    Shape at(last + 1, 0);
    for (int64_t begin = 0; begin < elements; begin += run) {
      int64_t block = 0;
      for (size_t axis = 0; axis <= last; ++axis) {
        const int64_t size = axis == last ? 1 : shape[axis] / counts[axis];
        block = block * counts[axis] + at[axis] / size;
      }
      visit(begin, run, block);
      for (size_t axis = last + 1; axis-- > 0;) {
        if (++at[axis] < (axis == last ? counts[axis] : shape[axis])) break;
        at[axis] = 0;
      }
    }
  }
};

/// Packs codes of `bits` bits from the lowest bit up.
Bytes pack(const std::vector<uint8_t>& codes, unsigned bits);
/// The code at an index of packed data.
inline unsigned unpack(const std::byte* data, unsigned bits, size_t index) {
  const size_t bit = index * bits;
  unsigned word = static_cast<unsigned>(data[bit / 8]);
  if (bit % 8 + bits > 8) word |= static_cast<unsigned>(data[bit / 8 + 1]) << 8;
  return (word >> (bit % 8)) & ((1U << bits) - 1);
}

/// The bytes of the values as float16 or float32.
Bytes store(std::span<const float> values, bool half);
/// Rounds to float16 if the weight has float16 elements.
float rounded(float value, bool half);
Part numbers(std::span<const float> values, Shape shape, bool half);
format::BlobType float_type(bool half);
format::BlobType unsigned_type(unsigned bits);

/// The sparse parts of joint forms: one bit for each element, and the codes of the kept elements.
Bytes mask_bits(const std::vector<bool>& kept);
std::vector<uint8_t> kept_codes(const std::vector<uint8_t>& codes, const std::vector<bool>& kept);

/// Bytes of all parts.
size_t bytes_of(const Encoding& encoding);

/// Calls `work` for 0 to count - 1 on several threads.
void in_parallel(size_t count, const std::function<void(size_t)>& work);

}  // namespace moka::compress
