#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "groups.glsl"

layout(constant_id = 2) const uint kThen = 0;
layout(constant_id = 3) const uint kLast = 0;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, groups, members;
  float a1, b1, a2, b2;
  GROUPS;
};
DEFINE_GROUPS

shared float parts[256];

float greater(float a, float b) { return b > a || isnan(b) ? b : a; }
float plus(float a, float b) { return a + b; }
DEFINE_COMBINED(greatest, float, greater)
DEFINE_COMBINED(sum_of, float, plus)

void main() {
  const uint g = group();
  const bool there = g < groups;
  const uint first = there ? first_of(g) : 0, n = there ? members : 0;
  const uint mine = lane(), step = lane_count();
  float top = -INF;
  for (uint m = mine; m < n; m += step) top = greater(top, float(x[x_at + first + member(m)]));
  top = greatest(top);
  float sum = 0.0;
  for (uint m = mine; m < n; m += step) sum += exp(float(x[x_at + first + member(m)]) - top);
  sum = sum_of(sum);
  // The difference of two infinities depends on the driver.
  const bool undefined = isnan(top) || isinf(top);
  for (uint m = mine; m < n; m += step) {
    const uint at = first + member(m);
    float v = exp(float(x[x_at + at]) - top) / sum;
    if (undefined) v = NAN;
    v = function_of(kThen, v, a1, b1);
    y[y_at + at] = T(function_of(kLast, v, a2, b2));
  }
}
