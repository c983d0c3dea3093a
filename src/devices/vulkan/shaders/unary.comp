#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kFunction = 0;
layout(constant_id = 1) const uint kThen = 0;
layout(constant_id = 2) const uint kLast = 0;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x0, y0, count;
  float a0, b0, a1, b1, a2, b2;
};

void main() {
  const uint i = index();
  if (i >= count) return;
  float v = function_of(kFunction, float(x[x0 + i]), a0, b0);
  v = function_of(kThen, v, a1, b1);
  y[y0 + i] = T(function_of(kLast, v, a2, b2));
}
