#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Swaps the rows and the columns of each group, and reverses the taps.

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, count;
  uint rows, columns, taps;  // of a group of x
};

void main() {
  const uint e = index();
  if (e >= count) return;
  const uint tap = e % taps, row = e / taps % rows, column = e / taps / rows % columns;
  const uint group = e / taps / rows / columns;
  y[y_at + e] = x[x_at + ((group * rows + row) * columns + column) * taps + taps - 1 - tap];
}
