#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// A convolution of 3 x 3 without strides by Winograd's F(2x2, 3x3), in one dispatch. A tile is 2 x 2 pixels of the
// result. The 4 x 4 elements of x that it depends on are transformed to 16 numbers, and each kernel is already stored as
// 16 numbers. 16 products over the channels give 16 sums, which are transformed to the pixels. A workgroup computes 32
// channels of 32 tiles: 16 invocations share a product, and each computes 8 x 8 of its sums.

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kBias = false;
layout(constant_id = 1) const bool kAddend = false;
layout(constant_id = 2) const uint kThen = 0;
layout(constant_id = 3) const uint kLast = 0;
layout(constant_id = 4) const bool kNorm = false;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer W { vec4 w[]; };  // [16, channels, made / 4] of four
layout(binding = 2) readonly buffer B { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
layout(binding = 5) readonly buffer N { vec2 norms[]; };
layout(push_constant) uniform P {
  uint x_at, w_at, bias_at, addend_at, y_at, norms_at;
  float a1, b1, a2, b2;
  uint channels, made, columns, in_image, across;  // columns: batch * in_image tiles; across: tiles in a row
  int in_size[2], out_size[2], pads[2];
};

const uint has = kNorm ? HAS_NORM : 0;
#include "norms.glsl"

const uint kDepth = 4;  // channels in shared memory at a time
// First [kDepth, 16, 8] of four channels of the result and as many of four tiles, then [16, 8, 8] of four sums.
shared vec4 pool[2 * kDepth * 128];
const uint kTilesAt = kDepth * 128;

vec4 transformed(vec4 d) { return vec4(d.x - d.z, d.y + d.z, d.z - d.y, d.y - d.w); }
vec2 transformed_back(vec4 v) { return vec2(v.x + v.y + v.z, v.y - v.z - v.w); }

void main() {
  const uint t = gl_LocalInvocationID.x;
  const uint first_row4 = gl_WorkGroupID.y * 8, first_column = gl_WorkGroupID.x * 32;
  const uint rows4 = (made + 3) / 4;

  // Two invocations transform a tile's elements of a channel, each to two of the four rows.
  const uint patch_of = t % 128, in_block = patch_of / 32, column = first_column + patch_of % 32;
  const bool lower = t >= 128;
  const uint image = column / in_image, tile = column % in_image;
  const int h0 = int(tile / across) * 2 - pads[0] + (lower ? 1 : 0), w0 = int(tile % across) * 2 - pads[1];
  const uint in_plane = uint(in_size[0] * in_size[1]);

  const uint product = t / 16, row_group = t % 16 / 4, column_group = t % 4;
  vec4 sum[16];
  [[unroll]] for (uint i = 0; i < 16; i++) sum[i] = vec4(0.0);
  for (uint k0 = 0; k0 < channels; k0 += kDepth) {
    [[unroll]] for (uint i = 0; i < kDepth / 2; i++) {
      const uint n = t + i * 256, k = k0 + n / 128, e = n / 8 % 16, row4 = first_row4 + n % 8;
      pool[n] = k < channels && row4 < rows4 ? w[w_at + (e * channels + k) * rows4 + row4] : vec4(0.0);
    }
    const uint channel = k0 + in_block;
    const bool is_there = column < columns && channel < channels;
    const uint plane = x_at + (image * channels + channel) * in_plane;
    vec4 rows[3];
    [[unroll]] for (int r = 0; r < 3; r++) {
      const int h = h0 + r;
      [[unroll]] for (int c = 0; c < 4; c++) {
        const int at = w0 + c;
        const bool inside = is_there && h >= 0 && h < in_size[0] && at >= 0 && at < in_size[1];
        rows[r][c] = inside ? float(x[plane + uint(h * in_size[1] + at)]) : 0.0;
      }
    }
    const vec4 first = transformed(lower ? rows[1] - rows[0] : rows[0] - rows[2]);
    const vec4 second = transformed(lower ? rows[0] - rows[2] : rows[1] + rows[2]);
    const uint to = kTilesAt + (in_block * 16 + (lower ? 8 : 0)) * 8 + patch_of % 32 / 4;
    [[unroll]] for (uint c = 0; c < 4; c++) {
      pool[to + c * 8][t % 4] = first[c];
      pool[to + (c + 4) * 8][t % 4] = second[c];
    }
    barrier();
    [[unroll]] for (uint k = 0; k < kDepth; k++) {
      const uint a = (k * 16 + product) * 8 + row_group * 2, b = kTilesAt + (k * 16 + product) * 8 + column_group * 2;
      const vec4 left[2] = {pool[a], pool[a + 1]}, right[2] = {pool[b], pool[b + 1]};
      [[unroll]] for (uint i = 0; i < 8; i++) {
        sum[i * 2] += left[i / 4][i % 4] * right[0];
        sum[i * 2 + 1] += left[i / 4][i % 4] * right[1];
      }
    }
    barrier();
  }

  // The 16 sums of a channel and a tile meet in shared memory, 8 channels at a time.
  const uint out_column = first_column + t % 32;
  const uint out_image = out_column / in_image, out_tile = out_column % in_image;
  const int oh = int(out_tile / across) * 2, ow = int(out_tile % across) * 2;
  for (uint pass = 0; pass < 4; pass++) {
    if (row_group == pass)
      [[unroll]] for (uint i = 0; i < 16; i++)
        pool[(product * 8 + i / 2) * 8 + column_group * 2 + i % 2] = sum[i];
    barrier();
    const uint row = first_row4 * 4 + pass * 8 + t / 32;
    if (row < made && out_column < columns) {
      vec4 m[4];
      [[unroll]] for (uint e = 0; e < 16; e++) m[e / 4][e % 4] = pool[(e * 8 + t / 32) * 8 + t % 32 / 4][t % 4];
      const vec4 down[2] = {m[0] + m[1] + m[2], m[1] - m[2] - m[3]};
      const float b = kBias ? float(bias[bias_at + row]) : 0.0;
      const vec2 norm = norm_of(row);
      [[unroll]] for (int r = 0; r < 2; r++) {
        const vec2 v = transformed_back(down[r]);
        [[unroll]] for (int c = 0; c < 2; c++) {
          if (oh + r >= out_size[0] || ow + c >= out_size[1]) continue;
          const uint at = (out_image * made + row) * uint(out_size[0] * out_size[1]) + uint((oh + r) * out_size[1] + ow + c);
          float s = v[c] + b;
          if (kAddend) s += float(addend[addend_at + at]);
          y[y_at + at] = T(normed(function_of(kLast, function_of(kThen, s, a1, b1), a2, b2), norm));
        }
      }
    }
    barrier();
  }
}
