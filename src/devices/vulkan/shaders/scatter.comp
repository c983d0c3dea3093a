#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Applies updates in order: one invocation applies all updates of an element.

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kAlong = false;  // an index for each update
layout(constant_id = 1) const uint kDepth = 1;      // components of an index
layout(constant_id = 2) const uint kRule = 0;
layout(constant_id = 3) const bool kWraps = true;  // negative indices count from the end
layout(binding = 0) readonly buffer I { int indices[]; };
layout(binding = 1) readonly buffer U { T updates[]; };
layout(binding = 2) buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint i_at, u_at, y_at, count;
  uint inner, n, outer_step;
  // For each component.
  int size[8];
  uint step_[8];
};

V combined(V a, V b) {
  switch (kRule) {
    case SCATTER_ADD: return a + b;
    case SCATTER_SUB: return a - b;
    case SCATTER_MUL: return a * b;
#ifdef IS_INT
    case SCATTER_DIV: return b == 0 ? 0 : b == -1 ? -a : a / b;
    case SCATTER_MAX: return max(a, b);
    case SCATTER_MIN: return min(a, b);
#else
    case SCATTER_DIV: return a / b;
    case SCATTER_MAX: return b > a || isnan(b) ? b : a;
    case SCATTER_MIN: return b < a || isnan(b) ? b : a;
#endif
    default: return b;
  }
}

void main() {
  const uint e = index();
  if (e >= count) return;
  const uint k = e % inner, outer = e / inner;
  const uint base = y_at + outer * outer_step + k;
  for (uint i = 0; i < n; i++) {
    const uint update = (outer * n + i) * inner + k;
    const uint at = i_at + (kAlong ? update : i * kDepth);
    uint to = base;
    bool inside = true;
    [[unroll]] for (uint d = 0; d < kDepth; d++) {
      int v = indices[at + d];
      if (kWraps && v < 0) v += size[d];
      inside = inside && v >= 0 && v < size[d];
      to += uint(v) * step_[d];
    }
    if (!inside) continue;
    if (kRule == SCATTER_UPDATE)
      y[to] = updates[u_at + update];
    else
      y[to] = T(combined(V(y[to]), V(updates[u_at + update])));
  }
}
