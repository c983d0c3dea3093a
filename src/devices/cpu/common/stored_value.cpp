// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/stored_value.h"

#include <algorithm>
#include <cstring>

#include "ops/common/nn_weights.h"
#include "ops/common/packed.h"

namespace moka::devices::cpu {

namespace {

/// The block of element i of a tensor of `shape`: the index of the entry in `blocks`, whose additional axes are
/// ignored.
int64_t block_of(const ir::Shape& shape, const ir::Shape& blocks, int64_t i) {
  int64_t at = 0, step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; axis--) {
    at += i % shape[axis] / (shape[axis] / blocks[axis]) * step;
    step *= blocks[axis];
    i /= shape[axis];
  }
  return at;
}

/// Calls f(block, from, to) for runs of elements of [first, first + n) that share a block.
template <class F>
void each_run(const ir::Shape& shape, const ir::Shape& blocks, int64_t first, int64_t n, F f) {
  int axis = shape.rank() - 1;
  int64_t run = 1;
  while (axis >= 0 && blocks[axis] == 1) run *= shape[axis--];
  if (axis >= 0) run *= shape[axis] / blocks[axis];
  for (int64_t i = first; i < first + n;) {
    const int64_t end = std::min(first + n, (i / run + 1) * run);
    f(axis < 0 ? 0 : block_of(shape, blocks, i), i - first, end - first);
    i = end;
  }
}

constexpr int kCodes = 256;

/// Writes the value of each code of an integer type: an entry of the table, or the integer itself.
void write_values(ir::DType type, const float* table, int64_t entries, float* values) {
  const int codes = 1 << ir::bits(type);
  for (int code = 0; code < codes; code++) {
    if (table != nullptr)
      values[code] = code < entries ? table[code] : 0;
    else if (type == ir::DType::int8 || type == ir::DType::int4)
      values[code] = static_cast<float>((code ^ codes / 2) - codes / 2);
    else
      values[code] = static_cast<float>(code);
  }
}

/// Codes [first, first + n).
void load_codes(const kernel::StoredConstant& s, const float* values, int64_t first, int64_t n, float* to) {
  const auto* bytes = static_cast<const uint8_t*>(s.elements.data());
  uint8_t codes[kCodes];
  for (int64_t at = 0; at < n; at += kCodes) {
    const int64_t some = std::min<int64_t>(kCodes, n - at);
    (s.in_network_format ? ops::unpack_high_first : ops::unpack_bits)(bytes, ir::bits(s.elements.dtype()), first + at,
                                                                      some, codes);
    for (int64_t i = 0; i < some; i++) to[at + i] = values[codes[i]];
  }
}

/// Looks `kEach` elements up by their byte.
template <int kEach>
void load_bytes(const kernel::StoredConstant& s, const float* values, int64_t first, int64_t n, float* to) {
  constexpr int kBits = 8 / kEach, kMask = (1 << kBits) - 1;
  const auto* bytes = static_cast<const uint8_t*>(s.elements.data());
  float of[kCodes][kEach];
  for (int byte = 0; byte < kCodes; byte++)
    for (int i = 0; i < kEach; i++)
      of[byte][i] = values[byte >> (s.in_network_format ? kEach - 1 - i : i) * kBits & kMask];
  const int64_t begin = (first + kEach - 1) / kEach * kEach, end = (first + n) / kEach * kEach;
  load_codes(s, values, first, begin - first, to);
  for (int64_t i = begin; i < end; i += kEach) std::memcpy(to + i - first, of[bytes[i / kEach]], sizeof of[0]);
  load_codes(s, values, end, first + n - end, to + end - first);
}

/// Elements [first, first + n) before they are scaled. They share a table, or have none.
void load_values(const kernel::StoredConstant& s, const float* table, int64_t entries, int64_t first, int64_t n,
                 float* to) {
  constexpr int64_t kMany = 2048;
  const ir::DType type = s.elements.dtype();
  const int bits = ir::bits(type);
  if (ir::is_float(type)) {
    if (!s.in_network_format) return ops::load_floats(s.elements.view(), first, n, to);
    const auto* bytes = static_cast<const std::byte*>(s.elements.data());
    return ops::load_unaligned(bytes + first * bits / 8, type == ir::DType::fp16, n, to);
  }
  float values[kCodes];
  write_values(type, table, entries, values);
  if (n >= kMany && bits == 1) return load_bytes<8>(s, values, first, n, to);
  if (n >= kMany && bits == 2) return load_bytes<4>(s, values, first, n, to);
  if (n >= kMany && bits == 4) return load_bytes<2>(s, values, first, n, to);
  load_codes(s, values, first, n, to);
}

}  // namespace

void stored_values(const kernel::StoredConstant& s, int64_t first, int64_t n, float* to) {
  const ir::Shape& shape = s.elements.shape();
  if (s.table.empty_handle()) {
    load_values(s, nullptr, 0, first, n, to);
  } else {
    const ir::Shape& blocks = s.table.shape();
    const int64_t entries = blocks[blocks.rank() - 1];
    each_run(shape, blocks, first, n, [&](int64_t block, int64_t from, int64_t end) {
      load_values(s, s.table.as<float>().data() + block * entries, entries, first + from, end - from, to + from);
    });
  }
  if (s.scale.empty_handle()) return;
  each_run(shape, s.scale.shape(), first, n, [&](int64_t block, int64_t from, int64_t end) {
    const float scale = s.scale.as<float>()[static_cast<size_t>(block)],
                offset = s.offset.empty_handle() ? 0.0f : s.offset.as<float>()[static_cast<size_t>(block)];
    for (int64_t i = from; i < end; i++) to[i] = (to[i] - offset) * scale;
  });
}

}  // namespace moka::devices::cpu
