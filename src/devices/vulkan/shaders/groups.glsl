// SPDX-License-Identifier: Apache-2.0
// Groups of elements (ops/common/groups.h), each of which 2^lane_bits neighboring invocations share. Push constants have
// `groups`, `members`, and the sizes and steps of both, the innermost dimension first.
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kGroupRank = 1;
layout(constant_id = 1) const uint kMemberRank = 1;
// across: neighboring invocations take neighboring groups, not members.
#define GROUPS uint lane_bits, across, group_size[4], group_step[4], member_size[4], member_step[4]

// Defines the functions that read push constants.
#define DEFINE_GROUPS                                          \
  uint lane_count() { return 1 << lane_bits; }                 \
  uint lane() {                                                \
    const uint t = gl_LocalInvocationID.x;                     \
    return across != 0 ? t >> (8 - lane_bits) : t & (lane_count() - 1); \
  }                                                            \
  uint slot() {                                                \
    const uint t = gl_LocalInvocationID.x;                     \
    return across != 0 ? t & ((256 >> lane_bits) - 1) : t >> lane_bits; \
  }                                                            \
  uint group() {                                               \
    const uint n = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; \
    return (n << (8 - lane_bits)) + slot();                    \
  }                                                            \
  uint first_of(uint g) {                                      \
    uint at = 0;                                               \
    [[unroll]] for (uint d = 0; d + 1 < kGroupRank; d++) {     \
      at += g % group_size[d] * group_step[d];                 \
      g /= group_size[d];                                      \
    }                                                          \
    return at + g * group_step[kGroupRank - 1];                \
  }                                                            \
  uint member(uint m) {                                        \
    uint at = 0;                                               \
    [[unroll]] for (uint d = 0; d + 1 < kMemberRank; d++) {    \
      at += m % member_size[d] * member_step[d];               \
      m /= member_size[d];                                     \
    }                                                          \
    return at + m * member_step[kMemberRank - 1];              \
  }

// Combines the values of all lanes by COMBINE(a, b), for all of them. Every invocation of the work group calls it.
#define DEFINE_COMBINED(NAME, TYPE, COMBINE)                                     \
  TYPE NAME(TYPE v) {                                                            \
    if (lane_bits == 0) return v;                                                \
    const uint first = slot() << lane_bits, l = lane();                          \
    barrier();                                                                   \
    parts[first + l] = v;                                                        \
    barrier();                                                                   \
    [[dont_unroll]] for (uint s = lane_count() / 2; s > 0; s /= 2) {                    \
      if (l < s) parts[first + l] = COMBINE(parts[first + l], parts[first + l + s]); \
      barrier();                                                                 \
    }                                                                            \
    return parts[first];                                                         \
  }
