#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Sorts each row: the place of an element is the number of those that come before it.

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kAscending = false;
layout(constant_id = 1) const bool kValues = true;
layout(constant_id = 2) const bool kIndices = true;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(binding = 2) writeonly buffer I { int indices[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, i_at, count;
  uint n, inner, k;
};

// Equal elements keep their order, and NaN comes last.
bool before(V a, uint i, V b, uint j) {
#ifndef IS_INT
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? i < j : isnan(b);
#endif
  if (a == b) return i < j;
  return kAscending ? a < b : a > b;
}

void main() {
  const uint e = index();
  if (e >= count) return;
  const uint c = e % inner, i = e / inner % n, outer = e / inner / n;
  const uint row = x_at + outer * n * inner + c;
  const V mine = V(x[x_at + e]);
  uint place = 0;
  for (uint j = 0; j < n; j++)
    if (before(V(x[row + j * inner]), j, mine, i)) place++;
  if (place >= k) return;
  const uint to = (outer * k + place) * inner + c;
  if (kValues) y[y_at + to] = x[x_at + e];
  if (kIndices) indices[i_at + to] = int(i);
}
