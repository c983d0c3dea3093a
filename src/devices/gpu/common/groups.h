// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/common.h"
#include "ops/common/groups.h"

namespace moka::devices::gpu {

/// Groups of elements as shaders/groups.glsl takes them.
struct GroupWalk {
  static constexpr size_t kRank = 4;
  /// GROUPS of the parameters, the innermost dimension first.
  struct Params {
    uint32_t lane_bits = 0, across = 0;
    std::array<uint32_t, kRank> group_size{1, 1, 1, 1}, group_step{}, member_size{1, 1, 1, 1}, member_step{};
  };

  GroupWalk(const Features& card, const ops::Groups& g);

  uint32_t groups = 1, members = 1;
  Params params;
  /// The specialization constants: those of this walk, then `more`.
  std::vector<uint32_t> constants(std::initializer_list<uint32_t> more) const;
  Groups work_groups() const;

 private:
  uint32_t lanes() const { return 1u << params.lane_bits; }
  uint32_t group_rank_ = 1, member_rank_ = 1;
};

}  // namespace moka::devices::gpu
