#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T2 y[]; };
layout(push_constant) uniform P { uint x_at, y_at, count; };

void main() {
  const uint i = index();
  if (i >= count) return;
  const V v = V(x[x_at + i]);
#if defined(TO_BOOL)
  y[y_at + i] = T2(v != V(0) ? 1u : 0u);
#elif defined(TO_INT) && defined(FROM_FLOAT)
  // Truncated towards zero, saturated, NaN as 0.
  int n = 0;
  if (v >= 2147483648.0)
    n = 2147483647;
  else if (v <= -2147483648.0)
    n = -2147483647 - 1;
  else if (v == v)
    n = int(v);
  y[y_at + i] = n;
#else
  y[y_at + i] = T2(V2(v));
#endif
}
