#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "groups.glsl"
// (x - mean) / sqrt(variance + epsilon) * gamma + beta in each group, or x / sqrt(sum of squares + epsilon).

layout(constant_id = 2) const bool kCenterd = true;
layout(constant_id = 3) const bool kScaled = false;   // has gamma
layout(constant_id = 4) const bool kShifted = false;  // has beta
layout(constant_id = 5) const uint kThen = 0;
layout(constant_id = 6) const uint kLast = 0;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer G { T gamma[]; };
layout(binding = 2) readonly buffer B { T beta[]; };
layout(binding = 3) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, gamma_at, beta_at, y_at, groups, members;
  float epsilon, a1, b1, a2, b2;
  // Member m of group g has the parameters number g % period * step + m / run.
  uint period, step_, run;
  GROUPS;
};
DEFINE_GROUPS

shared float parts[256];
float plus(float a, float b) { return a + b; }
DEFINE_COMBINED(sum_of, float, plus)

void main() {
  const uint g = group();
  const bool there = g < groups;
  const uint first = there ? first_of(g) : 0, n = there ? members : 0;
  const uint mine = lane(), step = lane_count();
  // Sums of differences from one element stay small where all values are far from zero.
  const float near = kCenterd ? float(x[x_at + first]) : 0.0;
  float mean = 0.0;
  if (kCenterd) {
    float sum = 0.0;
    for (uint m = mine; m < n; m += step) sum += float(x[x_at + first + member(m)]) - near;
    mean = near + sum_of(sum) / float(members);
  }
  float squares = 0.0;
  for (uint m = mine; m < n; m += step) {
    const float d = float(x[x_at + first + member(m)]) - mean;
    squares += d * d;
  }
  squares = sum_of(squares);
  const float scale = 1.0 / sqrt((kCenterd ? squares / float(members) : squares) + epsilon);
  const uint base = g % period * step_;
  for (uint m = mine; m < n; m += step) {
    const uint at = first + member(m), p = base + m / run;
    float v = (float(x[x_at + at]) - mean) * scale;
    if (kScaled) v *= float(gamma[gamma_at + p]);
    if (kShifted) v += float(beta[beta_at + p]);
    v = function_of(kThen, v, a1, b1);
    y[y_at + at] = T(function_of(kLast, v, a2, b2));
  }
}
