#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "groups.glsl"

layout(constant_id = 2) const bool kLeast = false;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T2 y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, groups, members;
  GROUPS;
};
DEFINE_GROUPS

struct Best {
  V value;
  uint at;
};
shared Best parts[256];

const uint kNone = 0xffffffffu;

// The first of equal ones. A NaN is better than every number.
Best better(Best a, Best b) {
  if (a.at == kNone) return b;
  if (b.at == kNone) return a;
#ifndef IS_INT
  if (isnan(a.value) != isnan(b.value)) return isnan(a.value) ? a : b;
#endif
  if (kLeast ? b.value < a.value : b.value > a.value) return b;
  if (kLeast ? a.value < b.value : a.value > b.value) return a;
  return b.at < a.at ? b : a;
}
DEFINE_COMBINED(best_of, Best, better)

void main() {
  const uint g = group();
  const bool there = g < groups;
  const uint first = x_at + (there ? first_of(g) : 0), n = there ? members : 0;
  const uint mine = lane(), step = lane_count();
  Best best = Best(V(0), kNone);
  for (uint m = mine; m < n; m += step) best = better(best, Best(V(x[first + member(m)]), m));
  best = best_of(best);
  if (there && mine == 0) y[y_at + g] = T2(best.at);
}
