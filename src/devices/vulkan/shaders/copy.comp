#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Copies the elements of one grid to another: slices, parts of a concatenation, tiles, small transposes.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kRank = 1;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, count;
  uint x_first, y_first;
  // The innermost dimension first. Steps may be negative.
  uint size[7];
  int x_step[7];
  int y_step[7];
};

void main() {
  const uint i = index();
  if (i >= count) return;
  uint rest = i;
  int from = int(x_at + x_first), to = int(y_at + y_first);
  [[unroll]] for (uint d = 0; d + 1 < kRank; d++) {
    const uint k = rest % size[d];
    rest /= size[d];
    from += int(k) * x_step[d];
    to += int(k) * y_step[d];
  }
  from += int(rest) * x_step[kRank - 1];
  to += int(rest) * y_step[kRank - 1];
  y[to] = x[from];
}
