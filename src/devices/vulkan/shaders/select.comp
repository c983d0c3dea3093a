#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer C { uint8_t c[]; };
layout(binding = 1) readonly buffer A { T a[]; };
layout(binding = 2) readonly buffer B { T b[]; };
layout(binding = 3) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint c_at, a_at, b_at, y_at, count, rank;
  uint size[5], c_step[5], a_step[5], b_step[5];
};

void main() {
  const uint i = index();
  if (i >= count) return;
  uint rest = i, r = c_at, p = a_at, q = b_at;
  for (uint d = 0; d < rank; d++) {
    const uint k = rest % size[d];
    rest /= size[d];
    r += k * c_step[d];
    p += k * a_step[d];
    q += k * b_step[d];
  }
  const bool first = uint(c[r]) != 0;
  // Only the selected one is read, because the other may be undefined.
  if (first)
    y[y_at + i] = T(V(a[p]));
  else
    y[y_at + i] = T(V(b[q]));
}
