#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// (byte - zero) * scale, with zeros and scales from a table along one axis.

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kSigned = false;
layout(constant_id = 1) const bool kZero = false;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer S { float scale[]; };
layout(binding = 2) readonly buffer Z { float zero[]; };
layout(binding = 3) writeonly buffer Y { T2 y[]; };
layout(push_constant) uniform P { uint x_at, scale_at, zero_at, y_at, count, inner, entries; };

void main() {
  const uint i = index();
  if (i >= count) return;
  const uint n = i / inner % entries, byte = uint(x[x_at + i]);
  const float v = kSigned ? float(bitfieldExtract(int(byte), 0, 8)) : float(byte);
  y[y_at + i] = T2((kZero ? v - zero[zero_at + n] : v) * scale[scale_at + n]);
}
