#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// round(x / scale) + zero as a byte, with scales and zeros from a table along one axis.

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kSigned = false;
layout(constant_id = 1) const bool kZero = false;
layout(constant_id = 2) const bool kNarrow = false;  // the quotient is rounded to float16, but where bytes saturate anyway
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer S { float scale[]; };
layout(binding = 2) readonly buffer Z { float zero[]; };
layout(binding = 3) writeonly buffer Y { T2 y[]; };
layout(push_constant) uniform P { uint x_at, scale_at, zero_at, y_at, count, inner, entries; };

void main() {
  const uint i = index();
  if (i >= count) return;
  const uint n = i / inner % entries;
  const float low = kSigned ? -128.0 : 0.0;
  float q = float(x[x_at + i]) / scale[scale_at + n];
  if (kNarrow && abs(q) < 65504.0) q = unpackHalf2x16(packHalf2x16(vec2(q, 0.0))).x;
  q = roundEven(q) + (kZero ? zero[zero_at + n] : 0.0);
  q = isnan(q) ? 0.0 : clamp(q, low, low + 255.0);
  y[y_at + i] = T2(uint(int(q)) & 255u);
}
