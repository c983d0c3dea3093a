#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(binding = 0) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint y_at, count;
  uint value;  // bits
};

void main() {
  const uint i = index();
  if (i < count) y[y_at + i] = T(value);
}
