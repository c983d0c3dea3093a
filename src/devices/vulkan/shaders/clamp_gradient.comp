#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// The gradient dy where x is between two limits, else 0.

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kUpper = true;  // has an upper limit
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer D { T dy[]; };
layout(binding = 2) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, dy_at, y_at, count;
  float low, high;
};

void main() {
  const uint i = index();
  if (i >= count) return;
  const float v = float(x[x_at + i]);
  const bool passes = !isnan(v) && v > low && (!kUpper || v < high);
  y[y_at + i] = T(passes ? float(dy[dy_at + i]) : 0.0);
}
