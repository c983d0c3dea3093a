#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "product.glsl"
layout(constant_id = 4) const uint kTile = 64;
layout(local_size_x_id = 5) in;
#include "tile.glsl"
// variants: f32 f16 h16 f32_f16

layout(binding = 0) readonly buffer A { T a[]; };
layout(binding = 1) readonly buffer B { T2 b[]; };
layout(binding = 2) readonly buffer S { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer C { T c[]; };

void main() {
  const uint t = gl_LocalInvocationID.x;
  const uint first_row = gl_WorkGroupID.y * kTile, first_column = gl_WorkGroupID.x * kTile;
  const uvec3 entry = batch_entry(gl_WorkGroupID.z);
  const uint a_base = a_at + position(entry, a_batch), b_base = b_at + position(entry, b_batch);

  mat4 sum = mat4(0.0);
  const uint row_group = t / kQuads, column_group = t % kQuads;
  for (uint k0 = 0; k0 < depth; k0 += TILE_DEPTH) {
    [[unroll]] for (uint i = 0; i < TILE_DEPTH * kTile; i += kInvocations) {
      const uint e = i + t;
      // Neighbors read what lies side by side.
      const uint k = kALine ? e % TILE_DEPTH : e / kTile, r = kALine ? e / TILE_DEPTH : e % kTile;
      const uint row = first_row + r;
      tile_a[k * kQuads + r / 4][r % 4] =
          TILE1(row < rows && k0 + k < depth ? float(a[a_base + row * a_row + (k0 + k) * a_k]) : 0.0);
    }
    [[unroll]] for (uint i = 0; i < TILE_DEPTH * kTile; i += kInvocations) {
      const uint e = i + t;
      const uint k = kBLine ? e % TILE_DEPTH : e / kTile, r = kBLine ? e / TILE_DEPTH : e % kTile;
      const uint column = first_column + r;
      tile_b[k * kQuads + r / 4][r % 4] =
          TILE1(column < columns && k0 + k < depth ? float(b[b_base + column * b_column + (k0 + k) * b_k]) : 0.0);
    }
    barrier();
    add_tiles(sum, row_group, column_group);
    barrier();
  }

  const uint c_base = position(entry, c_batch);
  [[unroll]] for (uint i = 0; i < 4; i++) {
    const uint row = first_row + row_group * 4 + i;
    if (row >= rows) break;
    [[unroll]] for (uint j = 0; j < 4; j++) {
      const uint column = first_column + column_group * 4 + j;
      if (column >= columns) break;
      const uint to = c_base + row * c_row + column * c_column;
      float v = sum[i][j];
      if (has_bias()) v += float(bias[bias_at + column * bias_column]);
      if (has_addend()) v += float(addend[addend_at + to]);
      c[c_at + to] = T(applied(v));
    }
  }
}
