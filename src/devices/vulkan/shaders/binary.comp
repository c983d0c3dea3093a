#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kFunction = 0;
layout(constant_id = 1) const uint kThen = 0;
layout(constant_id = 2) const uint kLast = 0;
layout(constant_id = 3) const uint kRank = 1;
layout(binding = 0) readonly buffer A { T a[]; };
layout(binding = 1) readonly buffer B { T b[]; };
layout(binding = 2) writeonly buffer Y { T2 y[]; };
layout(push_constant) uniform P {
  uint a_at, b_at, y_at, count;
  float a1, b1, a2, b2;
  // For each merged dimension, the innermost first.
  uint size[5], a_step[5], b_step[5];
};

#if !defined(COMPARES) && !defined(IS_INT)
#define binary(p, q) binary_of(kFunction, p, q)
#else
V2 binary(V p, V q) {
  switch (kFunction) {
#ifndef COMPARES
    case B_ADD: return p + q;
    case B_SUB: return p - q;
    case B_MUL: return p * q;
    case B_MAX: return max(p, q);
    case B_MIN: return min(p, q);
    case B_DIV:
    case B_FLOOR_DIV: {
      if (q == 0) return 0;
      if (q == -1) return -p;
      const V d = p / q;
      return kFunction == B_FLOOR_DIV && d * q != p && (p < 0) != (q < 0) ? d - 1 : d;
    }
    case B_MOD: {
      if (q == 0 || q == -1) return 0;
      const V r = p - p / q * q;
      return r != 0 && (r < 0) != (q < 0) ? r + q : r;
    }
#else
    case B_EQUAL: return V2(p == q);
    case B_NOT_EQUAL: return V2(p != q);
    case B_LESS: return V2(p < q);
    case B_LESS_EQUAL: return V2(p <= q);
    case B_GREATER: return V2(p > q);
    case B_GREATER_EQUAL: return V2(p >= q);
    case B_AND: return V2(p != 0 && q != 0);
    case B_OR: return V2(p != 0 || q != 0);
    case B_XOR: return V2((p != 0) != (q != 0));
#endif
    default: return V2(0);
  }
}
#endif

void main() {
  const uint i = index();
  if (i >= count) return;
  uint rest = i, p = a_at, q = b_at;
  [[unroll]] for (uint d = 0; d + 1 < kRank; d++) {
    const uint k = rest % size[d];
    rest /= size[d];
    p += k * a_step[d];
    q += k * b_step[d];
  }
  p += rest * a_step[kRank - 1];
  q += rest * b_step[kRank - 1];
  V2 v = binary(V(a[p]), V(b[q]));
#if !defined(COMPARES) && !defined(IS_INT)
  v = function_of(kThen, v, a1, b1);
  v = function_of(kLast, v, a2, b2);
#endif
  y[y_at + i] = T2(v);
}
