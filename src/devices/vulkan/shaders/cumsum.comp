#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "groups.glsl"
// The members of a group go through shared memory, `lanes` at a time. The sum of the earlier ones is carried over.

layout(constant_id = 2) const bool kExclusive = false;
layout(constant_id = 3) const bool kReverse = false;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, groups, members;
  GROUPS;
};
DEFINE_GROUPS

shared V parts[256];

void main() {
  const uint g = group(), l = lane(), each = lane_count(), first = slot() * each;
  const bool there = g < groups;
  const uint base = there ? first_of(g) : 0;
  V carry = V(0);
  for (uint done = 0; done < members; done += each) {
    const uint m = done + l;
    const bool inside = there && m < members;
    const uint at = inside ? base + member(kReverse ? members - 1 - m : m) : 0;
    V sum = inside ? V(x[x_at + at]) : V(0);
    barrier();
    parts[first + l] = sum;
    barrier();
    [[dont_unroll]] for (uint s = 1; s < each; s *= 2) {
      const V before = l >= s ? parts[first + l - s] : V(0);
      barrier();
      sum = before + sum;
      parts[first + l] = sum;
      barrier();
    }
    if (kExclusive) sum = l > 0 ? parts[first + l - 1] : V(0);
    if (inside) y[y_at + at] = T(carry + sum);
    carry += parts[first + each - 1];
  }
}
