#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
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
layout(constant_id = 9) const uint kSlices = 1;
const uint kParts = 1;
const bool kLeftLine = false, kRightLine = false;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer W { T2X4 w[]; };  // [channels, made / 4] of four
layout(binding = 2) readonly buffer B { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
layout(binding = 5) readonly buffer D { T inner[]; };
layout(binding = 6) readonly buffer E { T inner_bias[]; };
layout(binding = 7) readonly buffer N { vec2 norms[]; };
#include "depthwise.glsl"
#include "tile.glsl"

// An invocation reads the same quad of each row of a tile.
uint rows4, row4, x_base, in_plane, first_pixel, pixels;
ivec2 corner[4];

vec4 left(uint k, uint quad) {
  return k < channels && row4 < rows4 ? vec4(w[w_at + k * rows4 + row4]) : vec4(0.0);
}

vec4 right(uint k, uint quad) {
  vec4 v = vec4(0.0);
  if (k >= channels) return v;
  const uint plane = x_base + k * in_plane;
  uint by = inner_at + k * uint(kHeight * kWidth);
  // Unrolling this loop too would double the time that a driver takes to compile the shader.
  [[dont_unroll]] for (int a = 0; a < kHeight; a++) {
    [[unroll]] for (int b = 0; b < kWidth; b++) {
      const float weight = float(inner[by++]);
      [[unroll]] for (uint i = 0; i < 4; i++) {
        const ivec2 at = corner[i] + ivec2(a, b) * ivec2(dilations[0], dilations[1]);
        if (at.x >= 0 && at.x < in_size[0] && at.y >= 0 && at.y < in_size[1])
          v[i] += float(x[plane + uint(at.x * in_size[1] + at.y)]) * weight;
      }
    }
  }
  const float of_channel = kInnerBias ? float(inner_bias[inner_bias_at + k]) : 0.0;
  [[unroll]] for (uint i = 0; i < 4; i++)
    v[i] = first_pixel + quad + i * kQuads < pixels
               ? stored(function_of(kInnerLast, function_of(kInnerThen, v[i] + of_channel, c1, d1), c2, d2))
               : 0.0;
  return v;
}

void main() {
  const uint image = gl_WorkGroupID.z, first_row = gl_WorkGroupID.y * kTile;
  rows4 = (made + 3) / 4;
  row4 = first_row / 4 + column_group();
  in_plane = uint(in_size[0] * in_size[1]);
  x_base = x_at + image * channels * in_plane;
  first_pixel = gl_WorkGroupID.x * kTile;
  pixels = uint(out_size[0] * out_size[1]);
  [[unroll]] for (uint i = 0; i < 4; i++) {
    const int p = int(first_pixel + column_group() + i * kQuads);
    corner[i] = ivec2(p / out_size[1] * strides[0] - pads[0], p % out_size[1] * strides[1] - pads[1]);
  }
  const mat4 sum = multiplied(channels);
  if (!has_sums()) return;

  [[unroll]] for (uint i = 0; i < 4; i++) {
    const uint row = first_row + row_group() * 4 + i;
    if (row >= made) break;
    const float b = has_bias() ? float(bias[bias_at + row]) : 0.0;
    const vec2 norm = norm_of(row);
    [[unroll]] for (uint j = 0; j < 4; j++) {
      const uint q = first_pixel + column_group() + j * kQuads;
      if (q >= pixels) break;
      const uint to = (image * made + row) * pixels + q;
      float v = sum[i][j] + b;
      if (has_addend()) v += float(addend[addend_at + to]);
      y[y_at + to] = T(normed(applied(v), norm));
    }
  }
}
