#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "product.glsl"

layout(constant_id = 4) const uint kStep = 1;  // of k; 4 divides depth where it is 4
layout(constant_id = 5) const bool kAFours = false;  // fours are read of a: along k where kALine, else along rows
layout(constant_id = 6) const bool kBFours = false;
layout(local_size_x_id = 7) in;
const uint kSide = 8 * kStep;
layout(binding = 0) readonly buffer A { T a[]; };
layout(binding = 0) readonly buffer A4 { TX4 a4[]; };
layout(binding = 1) readonly buffer B { T2 b[]; };
layout(binding = 1) readonly buffer B4 { T2X4 b4[]; };
layout(binding = 2) readonly buffer S { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer C { T c[]; };
#include "product_block.glsl"

READ_SIDE(read_a, a, a4, kAFours, kALine)
READ_SIDE(read_b, b, b4, kBFours, kBLine)

void main() {
  const uvec2 first = first_row_and_column();
  const uint row = first.x, column = first.y;
  if (column >= columns) return;
  const uvec3 entry = batch_entry(gl_WorkGroupID.z);
  const uint a_base = a_at + position(entry, a_batch), b_base = b_at + position(entry, b_batch);

  const uint all_rows = rows, all_columns = columns, all_k = depth;
  const uint row_step = a_row, column_step = b_column, a_step = a_k, b_step = b_k;
  float sum[64];
  [[unroll]] for (uint n = 0; n < 64; n++) sum[n] = 0.0;
  for (uint k = 0; k < all_k; k += kStep) {
    float left[kSide], right[kSide];
    read_a(a_base, row, all_rows, row_step, k, a_step, left);
    read_b(b_base, column, all_columns, column_step, k, b_step, right);
    [[unroll]] for (uint j = 0; j < kStep; j++)
      [[unroll]] for (uint n = 0; n < 64; n++) sum[n] += left[n / 8 * kStep + j] * right[n % 8 * kStep + j];
  }

  store_block(row, column, c_at + position(entry, c_batch), c_row, c_column, bias_column, sum);
}
