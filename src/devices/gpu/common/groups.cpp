// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/groups.h"

#include <algorithm>

namespace moka::devices::gpu {

namespace {

constexpr uint32_t kWorkGroupBits = 8, kWorkGroup = 1 << kWorkGroupBits;
/// Invocations that keep a small GPU busy, and members that make another lane worth its part of the combination.
constexpr uint64_t kEnough = 32768;
constexpr uint32_t kMembersOfLane = 4;
constexpr uint32_t kNeighborBits = 5;

uint32_t side_of(const ops::Groups::Side& side, std::array<uint32_t, GroupWalk::kRank>& size,
                 std::array<uint32_t, GroupWalk::kRank>& step) {
  for (int d = 0; d < side.rank; d++) {
    const auto from = static_cast<size_t>(side.rank - 1 - d), to = static_cast<size_t>(d);
    size[to] = u32(side.size[from]);
    step[to] = u32(side.stride[from]);
  }
  return static_cast<uint32_t>(std::max(1, side.rank));
}

}  // namespace

GroupWalk::GroupWalk(const Features& card, const ops::Groups& g) : groups(u32(g.count())), members(u32(g.size())) {
  group_rank_ = side_of(g.groups(), params.group_size, params.group_step);
  member_rank_ = side_of(g.members(), params.member_size, params.member_step);
  // Neighboring invocations read neighboring elements.
  params.across = groups > 1 && params.member_step[0] != 1;
  for (const uint32_t bits : {3u, kNeighborBits, 6u, 7u, kWorkGroupBits}) {
    // The sizes in between only help large devices, whose invocations would be idle.
    if (bits > kNeighborBits && bits < kWorkGroupBits && !card.is_large) continue;
    const bool pays = (!params.across && lanes() < 1u << kNeighborBits) || uint64_t{groups} * lanes() < kEnough;
    if ((kMembersOfLane << bits) > members || !pays) break;
    params.lane_bits = bits;
  }
}

std::vector<uint32_t> GroupWalk::constants(std::initializer_list<uint32_t> more) const {
  std::vector<uint32_t> all{group_rank_, member_rank_};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Groups GroupWalk::work_groups() const {
  const uint32_t each = kWorkGroup / lanes();
  return CommandRecorder::lines(uint64_t{(groups + each - 1) / each} * kWorkGroup);
}

}  // namespace moka::devices::gpu
