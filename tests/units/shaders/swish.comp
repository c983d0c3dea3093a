#version 450
// SPDX-License-Identifier: Apache-2.0
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < uint(y.length())) y[i] = x[i] / (1.0 + exp(-x[i]));
}
