#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P { uint x_at, y_at, count; };

void main() {
  const uint i = index();
  if (i < count) y[y_at + i] = T(uint(x[x_at + i]) == 0u ? 1u : 0u);
}
