#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, count, channels, inner;
  int before, after;
  float alpha, beta, k;
};

void main() {
  const uint i = index();
  if (i >= count) return;
  const int channel = int(i / inner % channels);
  const int low = max(0, channel - before), high = min(int(channels) - 1, channel + after);
  float sum = 0.0;
  for (int c = low; c <= high; c++) {
    const float v = float(x[int(x_at + i) + (c - channel) * int(inner)]);
    sum += v * v;
  }
  y[y_at + i] = T(float(x[x_at + i]) / power_of(k + alpha * sum, beta));
}
