#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// The results may be the same memory as the weights and the moments.

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer W { T weight[]; };
layout(binding = 1) readonly buffer G { T gradient[]; };
layout(binding = 2) readonly buffer M0 { T first[]; };
layout(binding = 3) readonly buffer V0 { T second[]; };
layout(binding = 4) readonly buffer N { T numbers[]; };  // learning_rate, beta_1, beta_2, epsilon, step
layout(binding = 5) writeonly buffer W1 { T new_weight[]; };
layout(binding = 6) writeonly buffer M1 { T new_first[]; };
layout(binding = 7) writeonly buffer V1 { T new_second[]; };
layout(push_constant) uniform P {
  uint weight_at, gradient_at, first_at, second_at, numbers_at, new_weight_at, new_first_at, new_second_at, count;
};

// 1 - b^n without the difference of two numbers near 1, from 1 - b^(i + j) = p + q - p * q.
float rest_of(float b, float n) {
  const float size = abs(n), part = fract(size);
  if (part > 0.0 && b < 0.0) return NAN;
  float sum = part > 0.0 ? 1.0 - pow(b, part) : 0.0, power = 1.0 - b;
  for (uint left = uint(min(size, 4e9)); left != 0; left >>= 1) {
    if ((left & 1) != 0) sum += power * (1.0 - sum);
    power *= 2.0 - power;
  }
  return n < 0.0 ? -sum / (1.0 - sum) : sum;
}

void main() {
  const uint i = index();
  if (i >= count) return;
  const float rate = numbers[numbers_at], beta_1 = numbers[numbers_at + 1], beta_2 = numbers[numbers_at + 2];
  const float epsilon = numbers[numbers_at + 3], step = numbers[numbers_at + 4];
  const float g = gradient[gradient_at + i];
  const float m = beta_1 * first[first_at + i] + (1.0 - beta_1) * g;
  const float v = beta_2 * second[second_at + i] + (1.0 - beta_2) * g * g;
  const float size = rate / rest_of(beta_1, step), scale = 1.0 / sqrt(rest_of(beta_2, step));
  const float w = weight[weight_at + i] - size * m / (sqrt(v) * scale + epsilon);
  new_first[new_first_at + i] = m;
  new_second[new_second_at + i] = v;
  new_weight[new_weight_at + i] = w;
}
