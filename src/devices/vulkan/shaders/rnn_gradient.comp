#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "slopes.glsl"
// A step of a plain recurrent layer: from the products to its states, or from these to the gradients of the products.

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kForward = false;
layout(constant_id = 1) const uint kActivation = 0;
layout(constant_id = 2) const bool kNext = false;  // there is another step
layout(constant_id = 3) const bool kEach = false;  // each state has a gradient
layout(binding = 0) buffer G { float gates[]; };
layout(binding = 1) writeonly buffer S { float next[]; };
layout(binding = 2) readonly buffer H { float dh[]; };
layout(binding = 3) readonly buffer Y { float dy[]; };
layout(push_constant) uniform P {
  uint gates_at, next_at, dh_at, dy_at, count;
  float a, b;
};

void main() {
  const uint e = index();
  if (e >= count) return;
  const float v = gates[gates_at + e];
  if (kForward) {
    const float made = function_of(kActivation, v, a, b);
    gates[gates_at + e] = made;
    if (kNext) next[next_at + e] = made;
  } else {
    float d = dh[dh_at + e];
    if (kEach) d += dy[dy_at + e];
    gates[gates_at + e] = d * slope_of(kActivation, v, a, b);
  }
}
