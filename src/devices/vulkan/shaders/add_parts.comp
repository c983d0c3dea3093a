#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// Adds the parts of a product that several workgroups have divided (tile.glsl), in order, and a bias and an addend.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kThen = 0;
layout(constant_id = 1) const uint kLast = 0;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer B { T bias[]; };
layout(binding = 2) readonly buffer R { T addend[]; };
layout(binding = 3) writeonly buffer Y { T y[]; };
layout(binding = 4) readonly buffer N { vec2 norms[]; };
layout(push_constant) uniform P {
  uint x_at, bias_at, addend_at, y_at, norms_at;
  float a1, b1, a2, b2;
  uint has, count, parts;
  uint bias_step, biases;  // element i has the bias and the norm i / bias_step % biases
};
#include "after.glsl"
#include "norms.glsl"

void main() {
  const uint i = index();
  if (i >= count) return;
  float v = 0.0;
  for (uint p = 0; p < parts; p++) v += x[x_at + p * count + i];
  if (has_bias()) v += float(bias[bias_at + i / bias_step % biases]);
  if (has_addend()) v += float(addend[addend_at + i]);
  y[y_at + i] = T(normed(applied(v), norm_of(i / bias_step % biases)));
}
