#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, count;
  float scale, zero, low;
};

void main() {
  const uint i = index();
  if (i >= count) return;
  const float q = roundEven(float(x[x_at + i]) / scale) + zero;
  y[y_at + i] = T(((isnan(q) ? 0.0 : clamp(q, low, low + 255.0)) - zero) * scale);
}
