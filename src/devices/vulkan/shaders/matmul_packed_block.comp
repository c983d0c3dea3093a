#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "packed.glsl"
// matmul_packed.comp for devices whose shared memory is no faster than buffers.
layout(constant_id = 7) const bool kFours = false;  // the left side is read in fours
layout(local_size_x_id = 8) in;
layout(binding = 0) readonly buffer A { T a[]; };
layout(binding = 0) readonly buffer A4 { TX4 a4[]; };
layout(binding = 1) readonly buffer W { uint w[]; };
layout(binding = 2) readonly buffer Q { float parameters[]; };
layout(binding = 3) readonly buffer S { T bias[]; };
layout(binding = 4) readonly buffer R { T addend[]; };
layout(binding = 5) writeonly buffer C { T c[]; };
#include "product_block.glsl"

// Four elements of a row of a, from k on; zeros beyond its end.
vec4 row_of_a(uint row, uint k) {
  const uint from = a_at + min(row, rows - 1) * depth + k;
  if (kFours) return vec4(a4[from / 4]);
  vec4 v = vec4(0.0);
  [[unroll]] for (uint j = 0; j < 4; j++)
    if (k + j < depth) v[j] = float(a[from + j]);
  return v;
}

// Four weights of a column, from k on. All elements of a word have the same scale.
vec4 weights_of(uint column, uint k) {
  const uint row = min(column, columns - 1), word = w[w_at + row * words + k / kCodes], s = scale_of(row, k);
  vec4 v;
  [[unroll]] for (uint j = 0; j < 4; j++) v[j] = code_of(word, k % kCodes + j);
  if (kTable)
    [[unroll]] for (uint j = 0; j < 4; j++) v[j] = parameters[table_of(row) + uint(v[j])];
  if (kOffset) v -= parameters[offset_first + s];
  return kScale ? v * parameters[s] : v;
}

void main() {
  const uvec2 first = first_row_and_column();
  if (first.y >= columns) return;
  float sum[64];
  [[unroll]] for (uint n = 0; n < 64; n++) sum[n] = 0.0;
  for (uint k = 0; k < depth; k += 4) {
    vec4 left[8], right[8];
    [[unroll]] for (uint r = 0; r < 8; r++) {
      left[r] = row_of_a(first.x + r, k);
      right[r] = weights_of(first.y + r, k);
    }
    [[unroll]] for (uint j = 0; j < 4; j++)
      [[unroll]] for (uint n = 0; n < 64; n++) sum[n] += left[n / 8][j] * right[n % 8][j];
  }
  store_block(first.x, first.y, c_at, columns, 1, 1, sum);
}
