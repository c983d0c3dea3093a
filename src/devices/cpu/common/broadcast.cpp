// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/broadcast.h"

namespace moka::devices::cpu {

void Broadcast::add(int64_t size, std::array<int64_t, kInputs> steps) {
  if (size == 1) return;
  if (rank_ > 0) {
    const auto last = static_cast<size_t>(rank_ - 1);
    bool mergeable = true;
    for (size_t k = 0; k < kInputs; k++) mergeable &= steps_[last][k] == steps[k] * size;
    if (mergeable) {
      sizes_[last] *= size;
      steps_[last] = steps;
      return;
    }
  }
  sizes_[static_cast<size_t>(rank_)] = size;
  steps_[static_cast<size_t>(rank_)] = steps;
  rank_++;
}

Broadcast Broadcast::of(const ir::Shape& out, std::span<const ir::Shape> in) {
  Broadcast b;
  std::array<std::array<int64_t, ir::kMaxRank>, kInputs> strides{};
  for (size_t k = 0; k < in.size(); k++) strides[k] = in[k].strides();
  for (int i = 0; i < out.rank(); i++) {
    std::array<int64_t, kInputs> steps{};
    for (size_t k = 0; k < in.size(); k++) {
      const int j = i - (out.rank() - in[k].rank());
      if (j >= 0 && in[k][j] != 1) steps[k] = strides[k][static_cast<size_t>(j)];
    }
    b.add(out[i], steps);
  }
  return b;
}

}  // namespace moka::devices::cpu
