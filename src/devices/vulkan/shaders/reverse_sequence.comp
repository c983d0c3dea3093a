#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer L { int lengths[]; };
layout(binding = 2) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, l_at, y_at, count;
  uint sequence, sequence_step, batch, batch_step;
};

void main() {
  const uint e = index();
  if (e >= count) return;
  const int n = lengths[l_at + e / batch_step % batch], at = int(e / sequence_step % sequence);
  const int from = at < n ? n - 1 - at : at;
  y[y_at + e] = x[int(x_at + e) + (from - at) * int(sequence_step)];
}
