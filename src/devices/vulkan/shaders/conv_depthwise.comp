#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// variants: f32 f16 f32_f16
// A 1 x 1 convolution of the result of a depthwise convolution. A workgroup computes the tiles of that result as it
// needs them, so the result is never in memory. Workgroups for other output channels compute the same tiles again.

layout(constant_id = 0) const int kHeight = 1;  // the depthwise kernel's sizes
layout(constant_id = 1) const int kWidth = 1;
layout(constant_id = 2) const bool kInnerBias = false;  // of the depthwise convolution
layout(constant_id = 3) const uint kInnerThen = 0;
layout(constant_id = 4) const uint kInnerLast = 0;
layout(constant_id = 5) const uint kThen = 0;
layout(constant_id = 6) const uint kLast = 0;
layout(constant_id = 7) const uint kTile = 64;
layout(local_size_x_id = 8) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer W { T2X4 w[]; };  // [channels, made / 4] of four
layout(binding = 2) readonly buffer B { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
layout(binding = 5) readonly buffer D { T inner[]; };
layout(binding = 6) readonly buffer E { T inner_bias[]; };
#include "depthwise.glsl"
#include "tile.glsl"

void main() {
  const uint t = gl_LocalInvocationID.x, image = gl_WorkGroupID.z;
  const uint first_row = gl_WorkGroupID.y * kTile, first_pixel = gl_WorkGroupID.x * kTile;
  const uint rows4 = (made + 3) / 4, w_row = first_row / 4 + t % kQuads;
  const uint pixels = uint(out_size[0] * out_size[1]), in_plane = uint(in_size[0] * in_size[1]);
  const uint p = first_pixel + t % kTile;
  const int h0 = int(p) / out_size[1] * strides[0] - pads[0], v0 = int(p) % out_size[1] * strides[1] - pads[1];

  mat4 sum = mat4(0.0);
  const uint row_group = t / kQuads, column_group = t % kQuads;
  for (uint k0 = 0; k0 < channels; k0 += TILE_DEPTH) {
    [[unroll]] for (uint i = 0; i < TILE_DEPTH; i += kInvocations / kQuads) {
      const uint in_tile = t / kQuads + i, k = k0 + in_tile;
      tile_a[in_tile * kQuads + t % kQuads] = k < channels && w_row < rows4 ? vec4(w[w_at + k * rows4 + w_row]) : vec4(0.0);
    }
    // Unrolling this loop would double the time that a driver takes to compile the shader.
    [[dont_unroll]] for (uint i = 0; i < TILE_DEPTH; i += kInvocations / kTile) {
      const uint in_tile = t / kTile + i, k = k0 + in_tile;
      float v = 0.0;
      if (k < channels && p < pixels) {
        const uint plane = x_at + (image * channels + k) * in_plane;
        uint by = inner_at + k * uint(kHeight * kWidth);
        [[dont_unroll]] for (int a = 0; a < kHeight; a++) {
          const int h = h0 + a * dilations[0];
          const bool inside = h >= 0 && h < in_size[0];
          [[unroll]] for (int b = 0; b < kWidth; b++) {
            const int c = v0 + b * dilations[1];
            const float weight = float(inner[by++]);
            if (inside && c >= 0 && c < in_size[1]) v += float(x[plane + uint(h * in_size[1] + c)]) * weight;
          }
        }
        if (kInnerBias) v += float(inner_bias[inner_bias_at + k]);
        v = stored(function_of(kInnerLast, function_of(kInnerThen, v, c1, d1), c2, d2));
      }
      tile_b[in_tile * kQuads + t % kTile / 4][t % 4] = v;
    }
    barrier();
    add_tiles(sum, row_group, column_group);
    barrier();
  }

  [[unroll]] for (uint i = 0; i < 4; i++) {
    const uint row = first_row + row_group * 4 + i;
    if (row >= made) break;
    const float b = has_bias() ? float(bias[bias_at + row]) : 0.0;
    [[unroll]] for (uint j = 0; j < 4; j++) {
      const uint q = first_pixel + column_group * 4 + j;
      if (q >= pixels) break;
      const uint to = (image * made + row) * pixels + q;
      float v = sum[i][j] + b;
      if (has_addend()) v += float(addend[addend_at + to]);
      y[y_at + to] = T(applied(v));
    }
  }
}
