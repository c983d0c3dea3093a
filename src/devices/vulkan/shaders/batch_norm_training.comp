#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "groups.glsl"
// Normalizes each channel, which is a group, by its own mean and variance.

layout(constant_id = 2) const bool kScaled = false;   // has gamma
layout(constant_id = 3) const bool kShifted = false;  // has beta
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer G { T gamma[]; };
layout(binding = 2) readonly buffer B { T beta[]; };
layout(binding = 3) writeonly buffer Y { T y[]; };
layout(binding = 4) writeonly buffer M { T means[]; };
layout(binding = 5) writeonly buffer S { T variances[]; };
layout(push_constant) uniform P {
  uint x_at, gamma_at, beta_at, y_at, means_at, variances_at, groups, members;
  float epsilon;
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
  const float near = float(x[x_at + first]);
  float sum = 0.0;
  for (uint m = mine; m < n; m += step) sum += float(x[x_at + first + member(m)]) - near;
  const float mean = near + sum_of(sum) / float(members);
  float squares = 0.0;
  for (uint m = mine; m < n; m += step) {
    const float d = float(x[x_at + first + member(m)]) - mean;
    squares += d * d;
  }
  const float variance = sum_of(squares) / float(members);
  if (!there) return;
  if (mine == 0) {
    means[means_at + g] = T(mean);
    variances[variances_at + g] = T(variance);
  }
  float scale = 1.0 / sqrt(variance + epsilon);
  if (kScaled) scale *= float(gamma[gamma_at + g]);
  const float shift = kShifted ? float(beta[beta_at + g]) : 0.0;
  for (uint m = mine; m < n; m += step) {
    const uint at = first + member(m);
    y[y_at + at] = T((float(x[x_at + at]) - mean) * scale + shift);
  }
}
