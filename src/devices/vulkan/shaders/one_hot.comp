#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer I { int indices[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint i_at, y_at, count;
  uint depth, inner;
  uint on, off;  // bits
};

void main() {
  const uint e = index();
  if (e >= count) return;
  const uint k = e % inner, d = e / inner % depth, outer = e / inner / depth;
  y[y_at + e] = T(indices[i_at + outer * inner + k] == int(d) ? on : off);
}
