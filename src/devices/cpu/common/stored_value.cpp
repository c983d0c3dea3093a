#include "devices/cpu/common/stored_value.h"

#include <algorithm>

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

/// The elements as floats.
void load_elements(const kernel::StoredConstant& s, int64_t first, int64_t n, float* to) {
  const ir::DType type = s.elements.dtype();
  const auto* bytes = static_cast<const std::byte*>(s.elements.data());
  if (!s.in_network_format || ir::bits(type) == 8) return ops::load_floats(s.elements.view(), first, n, to);
  if (ir::is_float(type))
    return ops::load_unaligned(bytes + first * ir::bits(type) / 8, type == ir::DType::fp16, n, to);
  constexpr int64_t kBlock = 256;
  uint8_t codes[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t some = std::min(kBlock, n - at);
    ops::unpack_high_first(reinterpret_cast<const uint8_t*>(bytes), ir::bits(type), first + at, some, codes);
    for (int64_t i = 0; i < some; i++) to[at + i] = static_cast<float>(codes[i]);
  }
}

}  // namespace

void stored_values(const kernel::StoredConstant& s, int64_t first, int64_t n, float* to) {
  const ir::Shape& shape = s.elements.shape();
  load_elements(s, first, n, to);
  if (!s.table.empty_handle()) {
    const ir::Shape& blocks = s.table.shape();
    const int64_t entries = blocks[blocks.rank() - 1];
    each_run(shape, blocks, first, n, [&](int64_t block, int64_t from, int64_t end) {
      const float* table = s.table.as<float>().data() + block * entries;
      for (int64_t i = from; i < end; i++) to[i] = table[static_cast<size_t>(to[i])];
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
