#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "packed.glsl"
layout(constant_id = 7) const uint kTile = 64;
layout(local_size_x_id = 8) in;
#include "tile.glsl"
// variants: f32 f16
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

void main() {
  const uint t = gl_LocalInvocationID.x, k_mine = t % TILE_DEPTH;
  const uint first_row = gl_WorkGroupID.y * kTile, first_column = gl_WorkGroupID.x * kTile;
  mat4 sum = mat4(0.0);
  const uint row_group = t / kQuads, column_group = t % kQuads;
  for (uint k0 = 0; k0 < depth; k0 += TILE_DEPTH) {
    const uint k = k0 + k_mine;
    [[unroll]] for (uint i = 0; i < kTile; i += kInvocations / TILE_DEPTH) {
      const uint r = t / TILE_DEPTH + i, row = first_row + r, column = first_column + r;
      tile_a[k_mine * kQuads + r / 4][r % 4] = row < rows && k < depth ? float(a[a_at + row * depth + k]) : 0.0;
      tile_b[k_mine * kQuads + r / 4][r % 4] = column < columns && k < depth ? weight_of(column, k) : 0.0;
    }
    barrier();
    add_tiles(sum, row_group, column_group);
    barrier();
  }
  [[unroll]] for (uint i = 0; i < 4; i++) {
    const uint row = first_row + row_group * 4 + i;
    if (row >= rows) break;
    [[unroll]] for (uint j = 0; j < 4; j++) {
      const uint column = first_column + column_group * 4 + j;
      if (column >= columns) break;
      const uint to = row * columns + column;
      float v = sum[i][j];
      if (has_bias()) v += float(bias[bias_at + column]);
      if (has_addend()) v += float(addend[addend_at + to]);
      c[c_at + to] = T(applied(v));
    }
  }
}
