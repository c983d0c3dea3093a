// Groups of elements (ops/common/groups.h), each of which kLanes neighboring invocations share. Push constants have
// `groups`, `members`, and the sizes and steps of both, the innermost dimension first.
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kLanes = 256;  // a power of two
layout(constant_id = 1) const bool kAcross = false;  // neighboring invocations take neighboring groups, not members
layout(constant_id = 2) const uint kGroupRank = 1;
layout(constant_id = 3) const uint kMemberRank = 1;
#define GROUPS uint group_size[4], group_step[4], member_size[4], member_step[4]

const uint kGroups = 256 / kLanes;  // of a work group

uint lane() { return kAcross ? gl_LocalInvocationID.x / kGroups : gl_LocalInvocationID.x % kLanes; }
uint slot() { return kAcross ? gl_LocalInvocationID.x % kGroups : gl_LocalInvocationID.x / kLanes; }
uint group() { return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * kGroups + slot(); }

// Defines the functions that read push constants.
#define DEFINE_GROUPS                                          \
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
    if (kLanes == 1) return v;                                                   \
    const uint first = slot() * kLanes, l = lane();                              \
    barrier();                                                                   \
    parts[first + l] = v;                                                        \
    barrier();                                                                   \
    [[unroll]] for (uint s = kLanes / 2; s > 0; s /= 2) {                        \
      if (l < s) parts[first + l] = COMBINE(parts[first + l], parts[first + l + s]); \
      barrier();                                                                 \
    }                                                                            \
    return parts[first];                                                         \
  }
