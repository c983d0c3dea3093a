#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// Functions of an element and of parameters of its channel.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kKind = 0;
layout(constant_id = 1) const bool kScaled = false;   // has c
layout(constant_id = 2) const bool kShifted = false;  // has d
layout(constant_id = 3) const uint kThen = 0;
layout(constant_id = 4) const uint kLast = 0;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer A { T a[]; };
layout(binding = 2) readonly buffer B { T b[]; };
layout(binding = 3) readonly buffer C { T c[]; };
layout(binding = 4) readonly buffer D { T d[]; };
layout(binding = 5) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, a_at, b_at, c_at, d_at, y_at, count, channels, inner;
  float epsilon, a1, b1, a2, b2;
};

void main() {
  const uint i = index();
  if (i >= count) return;
  const uint k = i / inner % channels;
  const float p = float(a[a_at + k]), q = float(b[b_at + k]);
  float v = float(x[x_at + i]);
  if (kKind == CHANNELS_BATCH_NORM) {
    // Mean and variance, gamma and beta.
    v = (v - p) / sqrt(q + epsilon);
    if (kScaled) v *= float(c[c_at + k]);
    if (kShifted) v += float(d[d_at + k]);
  } else {
    v = p * function_of(F_SOFTPLUS, q * v, 0.0, 0.0);
  }
  v = function_of(kThen, v, a1, b1);
  y[y_at + i] = T(function_of(kLast, v, a2, b2));
}
