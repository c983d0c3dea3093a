#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#define LANES
#include "common.glsl"
#include "functions.glsl"
#include "product.glsl"
#include "rows.glsl"
// A product with few rows where k is the innermost dimension of both sides. A subgroup computes one element.

layout(local_size_x = 256) in;
layout(constant_id = 4) const bool kFours = false;  // both sides are read in fours
layout(binding = 0) readonly buffer A { T a[]; };
layout(binding = 0) readonly buffer A4 { TX4 a4[]; };
layout(binding = 1) readonly buffer B { T2 b[]; };
layout(binding = 1) readonly buffer B4 { T2X4 b4[]; };
layout(binding = 2) readonly buffer S { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer C { T c[]; };

void main() {
  const uint place = place_in_row(), column = row_of_group(), row = gl_WorkGroupID.y;
  const uvec3 entry = batch_entry(gl_WorkGroupID.z);
  const uint from = a_at + position(entry, a_batch) + row * a_row;
  const uint by = b_at + position(entry, b_batch) + min(column, columns - 1) * b_column;
  float sum = 0.0;
  if (kFours) {
    for (uint k = place; k < depth / 4; k += ROW_LANES) sum += dot(vec4(a4[from / 4 + k]), vec4(b4[by / 4 + k]));
  } else {
    for (uint k = place; k < depth; k += ROW_LANES) sum += float(a[from + k]) * float(b[by + k]);
  }
  sum = subgroupAdd(sum);
  if (place != 0 || column >= columns) return;
  const uint to = position(entry, c_batch) + row * c_row + column * c_column;
  float v = sum;
  if (has_bias()) v += float(bias[bias_at + column * bias_column]);
  if (has_addend()) v += float(addend[addend_at + to]);
  c[c_at + to] = T(applied(v));
}
