#include "devices/cpu/common/stored_value.h"

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

/// Whether all blocks are whole rows of the first axis.
bool are_rows(const ir::Shape& blocks) { return blocks.count() == blocks[0]; }

}  // namespace

void stored_values(const kernel::StoredConstant& s, int64_t first, int64_t n, float* to) {
  const ir::Shape& shape = s.elements.shape();
  ops::load_floats(s.elements.view(), first, n, to);
  if (s.table.empty_handle() && s.scale.empty_handle()) return;
  if (s.table.empty_handle() && s.offset.empty_handle() && are_rows(s.scale.shape())) {
    const int64_t row = shape.count() / s.scale.count();
    for (int64_t i = 0; i < n; i++) to[i] *= s.scale.as<float>()[static_cast<size_t>((first + i) / row)];
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    if (!s.table.empty_handle()) {
      const ir::Shape& blocks = s.table.shape();
      const int64_t entry =
          block_of(shape, blocks, first + i) * blocks[blocks.rank() - 1] + static_cast<int64_t>(to[i]);
      to[i] = s.table.as<float>()[static_cast<size_t>(entry)];
    }
    if (s.scale.empty_handle()) continue;
    const auto block = static_cast<size_t>(block_of(shape, s.scale.shape(), first + i));
    to[i] = (to[i] - (s.offset.empty_handle() ? 0.0f : s.offset.as<float>()[block])) * s.scale.as<float>()[block];
  }
}

}  // namespace moka::devices::cpu
