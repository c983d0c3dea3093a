#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "groups.glsl"

layout(constant_id = 2) const uint kKind = 0;
layout(constant_id = 3) const uint kThen = 0;
layout(constant_id = 4) const uint kLast = 0;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, groups, members;
  float a1, b1, a2, b2;
  GROUPS;
};
DEFINE_GROUPS

shared V parts[256];

V greater(V a, V b) {
#ifdef IS_INT
  return max(a, b);
#else
  return b > a || isnan(b) ? b : a;
#endif
}

V lower(V a, V b) {
#ifdef IS_INT
  return min(a, b);
#else
  return b < a || isnan(b) ? b : a;
#endif
}

V combine(V a, V b) {
  switch (kKind) {
    case R_MAX: return greater(a, b);
    case R_MIN: return lower(a, b);
    case R_PROD: return a * b;
    default: return a + b;
  }
}
DEFINE_COMBINED(combined, V, combine)
DEFINE_COMBINED(greatest, V, greater)

V start() {
  switch (kKind) {
#ifdef IS_INT
    case R_MAX: return -2147483647 - 1;
    case R_MIN: return 2147483647;
#else
    case R_MAX: return -INF;
    case R_MIN: return INF;
#endif
    case R_PROD: return V(1);
    default: return V(0);
  }
}

void main() {
  const uint g = group();
  const bool there = g < groups;
  const uint first = x_at + (there ? first_of(g) : 0), n = there ? members : 0;
  const uint mine = lane(), step = lane_count();
  V top = V(0);
#ifndef IS_INT
  if (kKind == R_LOG_SUM_EXP) {
    top = -INF;
    for (uint m = mine; m < n; m += step) top = greater(top, V(x[first + member(m)]));
    top = greatest(top);
  }
#endif
  V v = start();
  for (uint m = mine; m < n; m += step) {
    V e = V(x[first + member(m)]);
    if (kKind == R_L1) e = abs(e);
    if (kKind == R_L2 || kKind == R_SUM_SQUARE) e = e * e;
#ifndef IS_INT
    if (kKind == R_LOG_SUM_EXP) e = exp(e - top);
#endif
    v = combine(v, e);
  }
  v = combined(v);
  if (!there || mine != 0) return;
#ifndef IS_INT
  if (kKind == R_MEAN) v /= float(members);
  if (kKind == R_L2) v = sqrt(v);
  if (kKind == R_LOG_SUM) v = log(v);
  if (kKind == R_LOG_SUM_EXP) v = isinf(top) ? top : top + log(v);
  v = function_of(kThen, v, a1, b1);
  v = function_of(kLast, v, a2, b2);
#endif
  y[y_at + g] = T(v);
}
