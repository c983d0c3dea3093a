#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "packed.glsl"
layout(constant_id = 7) const uint kTile = 64;
layout(local_size_x_id = 8) in;
layout(constant_id = 9) const uint kSlices = 1;
const uint kParts = 1;
const bool kLeftLine = true, kRightLine = true;
#include "tile.glsl"
// The product of a matrix and the transpose of packed weights.

layout(binding = 0) readonly buffer A { T a[]; };
layout(binding = 1) readonly buffer W { uint w[]; };
layout(binding = 2) readonly buffer Q { float parameters[]; };
layout(binding = 3) readonly buffer S { T bias[]; };
layout(binding = 4) readonly buffer R { T addend[]; };
layout(binding = 5) writeonly buffer C { T c[]; };

float weight_of(uint row, uint k) {
  float v = code_of(w[w_at + row * words + k / kCodes], k % kCodes);
  if (kTable) v = parameters[table_of(row) + uint(v)];
  const uint s = scale_of(row, k);
  if (kOffset) v -= parameters[offset_first + s];
  return kScale ? v * parameters[s] : v;
}

uint first_row, first_column;

vec4 left(uint k, uint quad) {
  vec4 v = vec4(0.0);
  const uint row = first_row + quad * 4;
  [[unroll]] for (uint i = 0; i < 4; i++)
    if (row + i < rows && k < depth) v[i] = float(a[a_at + (row + i) * depth + k]);
  return v;
}

vec4 right(uint k, uint quad) {
  vec4 v = vec4(0.0);
  [[unroll]] for (uint i = 0; i < 4; i++) {
    const uint column = first_column + quad + i * kQuads;
    if (column < columns && k < depth) v[i] = weight_of(column, k);
  }
  return v;
}

void main() {
  first_row = gl_WorkGroupID.y * kTile;
  first_column = gl_WorkGroupID.x * kTile;
  const mat4 sum = multiplied(depth);
  if (!has_sums()) return;
  [[unroll]] for (uint i = 0; i < 4; i++) {
    const uint row = first_row + row_group() * 4 + i;
    if (row >= rows) break;
    [[unroll]] for (uint j = 0; j < 4; j++) {
      const uint column = first_column + column_group() + j * kQuads;
      if (column >= columns) break;
      const uint to = row * columns + column;
      float v = sum[i][j];
      if (has_bias()) v += float(bias[bias_at + column]);
      if (has_addend()) v += float(addend[addend_at + to]);
      c[c_at + to] = T(applied(v));
    }
  }
}
