#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "product.glsl"
// variants: f32 f16 f32_f16
// A block is 8 rows by 8 columns.

layout(constant_id = 6) const uint kStep = 1;  // of k; 4 divides depth where it is 4
layout(constant_id = 7) const bool kAFours = false;  // fours are read of a: along k where kALine, else along rows
layout(constant_id = 8) const bool kBFours = false;
layout(local_size_x_id = 9) in;
const uint kSide = 8 * kStep;
#include "block.glsl"
layout(binding = 0) readonly buffer A { T a[]; };
layout(binding = 0) readonly buffer A4 { TX4 a4[]; };
layout(binding = 1) readonly buffer B { T2 b[]; };
layout(binding = 1) readonly buffer B4 { T2X4 b4[]; };
layout(binding = 2) readonly buffer S { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer C { T c[]; };

READ_SIDE(read_a, a, a4, kAFours, kALine)
READ_SIDE(read_b, b, b4, kBFours, kBLine)

void main() {
  const uint i = block(), row_blocks = (rows + 7) / 8;
  const uint row = i % row_blocks * 8, column = i / row_blocks * 8;
  if (column >= columns) return;
  const uvec3 entry = batch_entry(gl_WorkGroupID.z);
  const uint a_base = a_at + position(entry, a_batch), b_base = b_at + position(entry, b_batch);

  float sum[64];
  [[unroll]] for (uint n = 0; n < 64; n++) sum[n] = 0.0;
  for (uint k = 0; k < depth; k += kStep) {
    float left[kSide], right[kSide];
    read_a(a_base, row, rows, a_row, k, a_k, left);
    read_b(b_base, column, columns, b_column, k, b_k, right);
    [[unroll]] for (uint j = 0; j < kStep; j++)
      [[unroll]] for (uint n = 0; n < 64; n++) sum[n] += left[n / 8 * kStep + j] * right[n % 8 * kStep + j];
  }

  float added[8];
  [[unroll]] for (uint n = 0; n < 8; n++)
    added[n] = kBias ? float(bias[bias_at + min(column + n, columns - 1) * bias_column]) : 0.0;
  // A driver takes long to compile this loop unrolled. The sums move up by a row instead, so that their indices stay
  // constant.
  [[dont_unroll]] for (uint r = row; r < min(row + 8, rows); r++) {
    [[unroll]] for (uint n = 0; n < 8; n++) {
      if (column + n >= columns) break;
      const uint to = position(entry, c_batch) + r * c_row + (column + n) * c_column;
      float v = sum[n] + added[n];
      if (kAddend) v += float(addend[addend_at + to]);
      c[c_at + to] = T(function_of(kLast, function_of(kThen, v, a1, b1), a2, b2));
    }
    [[unroll]] for (uint n = 0; n < 56; n++) sum[n] = sum[n + 8];
  }
}
