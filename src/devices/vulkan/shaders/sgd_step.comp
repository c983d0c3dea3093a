#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// The results may be the same memory as the weights and the velocity.

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer W { T weight[]; };
layout(binding = 1) readonly buffer G { T gradient[]; };
layout(binding = 2) readonly buffer V0 { T velocity[]; };
layout(binding = 3) readonly buffer R { T rate[]; };
layout(binding = 4) readonly buffer M { T momentum[]; };
layout(binding = 5) writeonly buffer W1 { T new_weight[]; };
layout(binding = 6) writeonly buffer V1 { T new_velocity[]; };
layout(push_constant) uniform P {
  uint weight_at, gradient_at, velocity_at, rate_at, momentum_at, new_weight_at, new_velocity_at, count;
};

void main() {
  const uint i = index();
  if (i >= count) return;
  const float v = momentum[momentum_at] * velocity[velocity_at + i] + gradient[gradient_at + i];
  const float w = weight[weight_at + i] - rate[rate_at] * v;
  new_velocity[new_velocity_at + i] = v;
  new_weight[new_weight_at + i] = w;
}
