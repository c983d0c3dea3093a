// SPDX-License-Identifier: Apache-2.0
#include "runtime/state_undo.h"

#include <algorithm>
#include <cstring>

#include "ops/common/slicing.h"

namespace moka::runtime {

namespace {
/// A piece that is smaller costs more to note than to copy with its neighbors.
constexpr size_t kSmallest = 64;
}  // namespace

void StateUndo::clear() {
  pieces_.clear();
  saved_.clear();
  whole_.clear();
}

void StateUndo::save(std::byte* data, size_t bytes) {
  const size_t offset = saved_.size();
  saved_.resize(offset + bytes);
  std::memcpy(saved_.data() + offset, data, bytes);
  pieces_.push_back({data, bytes, offset});
}

void StateUndo::save(const ir::TensorView& state) {
  if (std::find(whole_.begin(), whole_.end(), state.data) != whole_.end()) return;
  whole_.push_back(state.data);
  if (const auto bytes = ir::storage_bytes(state.dtype, state.shape); bytes.ok() && *bytes > 0)
    save(static_cast<std::byte*>(state.data), *bytes);
}

void StateUndo::save_slice(const ir::OpCall& call, const ir::TensorView& state) {
  if (std::find(whole_.begin(), whole_.end(), state.data) != whole_.end()) return;
  const auto slice = ops::resolve_slice(call, state.shape);
  const size_t count = static_cast<size_t>(std::max<int64_t>(state.shape.count(), 1));
  const auto bytes = ir::storage_bytes(state.dtype, state.shape);
  if (!slice.ok() || !bytes.ok() || *bytes % count != 0) return save(state);
  const size_t element = *bytes / count;
  const auto strides = state.shape.strides();
  // The last axes are one run of memory as long as the slice has them whole.
  int outer = slice->rank;
  size_t run = element;
  while (outer > 0) {
    const auto& a = slice->axes[outer - 1];
    if (a.step != 1) break;
    run *= static_cast<size_t>(a.size);
    outer--;
    if (a.size != state.shape[outer]) break;
  }
  if (run == 0) return;
  if (run < kSmallest && run < *bytes) return save(state);
  int64_t start = 0;
  for (int i = 0; i < slice->rank; i++) start += slice->axes[i].start * strides[static_cast<size_t>(i)];
  for (int i = 0; i < outer; i++)
    if (slice->axes[i].size == 0) return;
  int64_t at[ir::kMaxRank] = {};
  for (;;) {
    int64_t element_at = start;
    for (int i = 0; i < outer; i++) element_at += at[i] * slice->axes[i].step * strides[static_cast<size_t>(i)];
    save(static_cast<std::byte*>(state.data) + static_cast<size_t>(element_at) * element, run);
    int i = outer - 1;
    while (i >= 0 && ++at[i] == slice->axes[i].size) at[i--] = 0;
    if (i < 0) return;
  }
}

void StateUndo::restore() {
  for (size_t i = pieces_.size(); i-- > 0;)
    std::memcpy(pieces_[i].data, saved_.data() + pieces_[i].offset, pieces_[i].bytes);
  clear();
}

}  // namespace moka::runtime
