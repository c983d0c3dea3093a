#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, count;
  uint rows, columns;
  int lower, upper;  // negative: all
};

void main() {
  const uint e = index();
  if (e >= count) return;
  const int column = int(e % columns), row = int(e / columns % rows);
  const bool kept = (lower < 0 || row - column <= lower) && (upper < 0 || column - row <= upper);
  if (kept)
    y[y_at + e] = x[x_at + e];
  else
    y[y_at + e] = T(0);
}
