#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "product.glsl"
// A product with few rows. A workgroup computes 8 columns of one row with 32 invocations each where k is the innermost
// dimension of b, else 32 columns with 8.

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer A { T a[]; };
layout(binding = 1) readonly buffer B { T2 b[]; };
layout(binding = 2) readonly buffer S { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer C { T c[]; };

shared float part[256];

void main() {
  const uint t = gl_LocalInvocationID.x;
  const uint lanes = kBLine ? 32 : 8, outputs = 256 / lanes;
  const uint lane = kBLine ? t % 32 : t / 32, output_of_group = kBLine ? t / 32 : t % 32;
  const uint column = gl_WorkGroupID.x * outputs + output_of_group, row = gl_WorkGroupID.y;
  const uvec3 entry = batch_entry(gl_WorkGroupID.z);
  float sum = 0.0;
  if (column < columns) {
    uint from = a_at + position(entry, a_batch) + row * a_row + lane * a_k;
    uint by = b_at + position(entry, b_batch) + column * b_column + lane * b_k;
    for (uint k = lane; k < depth; k += lanes) {
      sum += float(a[from]) * float(b[by]);
      from += lanes * a_k;
      by += lanes * b_k;
    }
  }
  part[output_of_group * lanes + lane] = sum;
  barrier();
  const uint first = output_of_group * lanes;
  for (uint n = lanes / 2; n > 0; n /= 2) {
    if (lane < n) part[first + lane] += part[first + lane + n];
    barrier();
  }
  if (lane != 0 || column >= columns) return;
  const uint to = position(entry, c_batch) + row * c_row + column * c_column;
  float v = part[first];
  if (has_bias()) v += float(bias[bias_at + column * bias_column]);
  if (has_addend()) v += float(addend[addend_at + to]);
  c[c_at + to] = T(applied(v));
}
