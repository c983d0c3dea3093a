#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "product.glsl"
layout(constant_id = 4) const uint kTile = 64;
layout(local_size_x_id = 5) in;
layout(constant_id = 6) const uint kSlices = 1;
layout(constant_id = 7) const uint kParts = 1;
const bool kLeftLine = kALine, kRightLine = kBLine;
#include "tile.glsl"

layout(binding = 0) readonly buffer A { T a[]; };
layout(binding = 1) readonly buffer B { T2 b[]; };
layout(binding = 2) readonly buffer S { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer C { T c[]; };
layout(binding = 4) writeonly buffer Z { float partial[]; };

uint first_row, first_column, a_base, b_base;

vec4 left(uint k, uint quad) {
  vec4 v = vec4(0.0);
  const uint row = first_row + quad * 4;
  [[unroll]] for (uint i = 0; i < 4; i++)
    if (row + i < rows && k < depth) v[i] = float(a[a_base + (row + i) * a_row + k * a_k]);
  return v;
}

vec4 right(uint k, uint quad) {
  vec4 v = vec4(0.0);
  [[unroll]] for (uint i = 0; i < 4; i++) {
    const uint column = first_column + quad + i * kQuads;
    if (column < columns && k < depth) v[i] = float(b[b_base + column * b_column + k * b_k]);
  }
  return v;
}

void main() {
  first_row = gl_WorkGroupID.y * kTile;
  first_column = gl_WorkGroupID.x * kTile;
  const uvec3 at = batch_entry(entry());
  a_base = a_at + position(at, a_batch);
  b_base = b_at + position(at, b_batch);
  const mat4 sum = multiplied(depth);
  if (!has_sums()) return;

  const uint c_base = position(at, c_batch);
  [[unroll]] for (uint i = 0; i < 4; i++) {
    const uint row = first_row + row_group() * 4 + i;
    if (row >= rows) break;
    [[unroll]] for (uint j = 0; j < 4; j++) {
      const uint column = first_column + column_group() + j * kQuads;
      if (column >= columns) break;
      if (kParts > 1) {
        partial[c_at + (gl_WorkGroupID.z * rows + row) * columns + column] = sum[i][j];
        continue;
      }
      const uint to = c_base + row * c_row + column * c_column;
      float v = sum[i][j];
      if (has_bias()) v += float(bias[bias_at + column * bias_column]);
      if (has_addend()) v += float(addend[addend_at + to]);
      c[c_at + to] = T(applied(v));
    }
  }
}
