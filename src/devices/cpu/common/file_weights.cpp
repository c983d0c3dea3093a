// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/file_weights.h"

#include "devices/cpu/common/stored_value.h"

namespace moka::devices::cpu {

std::optional<FileWeights> FileWeights::of(const MatchCall& m, int arg) {
  constexpr size_t kSmall = size_t{64} << 10;
  auto stored = m.stored(arg);
  if (!stored || stored->is_half || !stored->table.empty_handle() || !stored->scale.empty_handle()) return std::nullopt;
  const ir::Tensor& t = stored->elements;
  if ((t.dtype() != ir::DType::fp32 && t.dtype() != ir::DType::fp16) || t.bytes() < kSmall) return std::nullopt;
  return FileWeights(std::move(*stored));
}

const float* FileWeights::read(int64_t first, int64_t n, float* to) const {
  if (!is_half()) return floats() + first;
  stored_values(stored_, first, n, to);
  return to;
}

}  // namespace moka::devices::cpu
