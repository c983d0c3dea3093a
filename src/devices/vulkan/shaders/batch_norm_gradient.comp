#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "groups.glsl"
// The gradients of a batch norm. Each channel is a group.

layout(constant_id = 2) const bool kScaled = false;    // has gamma
layout(constant_id = 3) const bool kTraining = false;  // the mean and the variance depend on x
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer D { T dy[]; };
layout(binding = 2) readonly buffer M { T means[]; };
layout(binding = 3) readonly buffer S { T variances[]; };
layout(binding = 4) readonly buffer G { T gamma[]; };
layout(binding = 5) writeonly buffer X1 { T dx[]; };
layout(binding = 6) writeonly buffer G1 { T dgamma[]; };
layout(binding = 7) writeonly buffer B1 { T dbeta[]; };
layout(push_constant) uniform P {
  uint x_at, dy_at, means_at, variances_at, gamma_at, dx_at, dgamma_at, dbeta_at, groups, members;
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
  const uint first = there ? first_of(g) : 0, n = there ? members : 0, c = there ? g : 0;
  const uint mine = lane(), step = lane_count();
  const float mean = float(means[means_at + c]), inverse = 1.0 / sqrt(float(variances[variances_at + c]) + epsilon);
  float sum = 0.0, products = 0.0;
  for (uint m = mine; m < n; m += step) {
    const uint at = first + member(m);
    const float d = float(dy[dy_at + at]);
    sum += d;
    products += d * (float(x[x_at + at]) - mean);
  }
  sum = sum_of(sum);
  products = sum_of(products) * inverse;
  if (!there) return;
  if (mine == 0) {
    dgamma[dgamma_at + g] = T(products);
    dbeta[dbeta_at + g] = T(sum);
  }
  const float scale = kScaled ? inverse * float(gamma[gamma_at + g]) : inverse;
  const float center = kTraining ? sum / float(members) : 0.0;
  const float slope = kTraining ? products / float(members) * inverse : 0.0;
  for (uint m = mine; m < n; m += step) {
    const uint at = first + member(m);
    float d = float(dy[dy_at + at]);
    if (kTraining) d -= center + (float(x[x_at + at]) - mean) * slope;
    dx[dx_at + at] = T(d * scale);
  }
}
