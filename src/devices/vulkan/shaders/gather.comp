#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kAlong = false;  // an index for each element of y
layout(constant_id = 1) const uint kDepth = 1;      // components of an index
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer I { T2 indices[]; };
layout(binding = 2) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, i_at, y_at, count;
  uint inner, n, outer_of_batch, outer_step;
  // For each component.
  int size[8];
  uint step_[8];
};

void main() {
  const uint e = index();
  if (e >= count) return;
  const uint k = e % inner, i = e / inner % n, outer = e / inner / n;
  const uint at = i_at + (kAlong ? e : (outer / outer_of_batch * n + i) * kDepth);
  uint from = x_at + outer * outer_step + k;
  [[unroll]] for (uint d = 0; d < kDepth; d++) {
    int v = int(V2(indices[at + d]));
    if (v < 0) v += size[d];
    from += uint(clamp(v, 0, size[d] - 1)) * step_[d];
  }
  y[y_at + e] = x[from];
}
