#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kFunction = 0;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, count;
  int a;
};

void main() {
  const uint i = index();
  if (i >= count) return;
  const int v = x[x_at + i];
  switch (kFunction) {
    case F_ABS: y[y_at + i] = v < 0 ? -v : v; break;
    case F_SIGN: y[y_at + i] = sign(v); break;
    case F_SQUARE: y[y_at + i] = v * v; break;
    case F_THRESHOLD: y[y_at + i] = max(v, a); break;
  }
}
