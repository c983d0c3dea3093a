// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/features.h"

#include <algorithm>

#include "base/error.h"

namespace moka::devices::gpu {

uint32_t Features::block_size() const { return std::clamp<uint32_t>(subgroup, 8, 64); }

bool Features::blocks_are_subgroups() const { return lanes && whole_subgroups && subgroup == block_size(); }

int64_t Features::rows_of_group() const { return lanes ? 256 / subgroup : 8; }

std::array<int64_t, 3> Features::block_groups(int64_t blocks, int64_t planes) const {
  constexpr int64_t kMost = 32768;
  const int64_t each = block_size(), n = (blocks + each - 1) / each;
  return {std::min(n, kMost), (n + kMost - 1) / kMost, planes};
}

std::string Features::refusal_of_groups(const std::array<int64_t, 3>& n) const {
  if (n[0] > groups[0] || n[1] > groups[1] || n[2] > groups[2])
    return cat("a dispatch of ", n[0], " x ", n[1], " x ", n[2], " groups, more than the device takes");
  return {};
}

}  // namespace moka::devices::gpu
