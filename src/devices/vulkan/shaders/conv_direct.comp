#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// A convolution whose groups are too small for tiles: each invocation computes kPixels neighbors of a row.

layout(local_size_x = 256) in;
layout(constant_id = 0) const int kDepth = 0;  // the kernel's sizes; 0: push constants tell
layout(constant_id = 1) const int kHeight = 0;
layout(constant_id = 2) const int kWidth = 1;
layout(constant_id = 3) const uint kThen = 0;
layout(constant_id = 4) const uint kLast = 0;
layout(constant_id = 5) const int kPixels = 1;
layout(constant_id = 6) const int kStride = 1;  // along rows, as is kDilation
layout(constant_id = 7) const int kDilation = 1;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer W { T w[]; };
layout(binding = 2) readonly buffer B { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
layout(binding = 5) readonly buffer N { vec2 norms[]; };
layout(push_constant) uniform P {
  uint x_at, w_at, bias_at, addend_at, y_at, norms_at;
  float a1, b1, a2, b2;
  uint count, channels, made, groups;  // channels of a group, in x and y
  int in_size[3], out_size[3], strides[3], dilations[3], pads[3];
  uint has;
  int depth, height;
};
#include "after.glsl"
#include "norms.glsl"
#include "columns.glsl"

void main() {
  const uint i = index();
  if (i >= count) return;
  const int in_row = (out_size[2] + kPixels - 1) / kPixels;
  const int row = int(i) / in_row, ow = (int(i) - row * in_row) * kPixels;
  const int slice = row / out_size[1], oh = row - slice * out_size[1], volume = slice / out_size[0];
  const int od = slice - volume * out_size[0];
  const uint plane = uint(volume), of_group = plane / made, c = plane % (made * groups);
  const uint in_plane = uint(in_size[0] * in_size[1] * in_size[2]);
  uint from = x_at + of_group * channels * in_plane;
  const int deep = kDepth != 0 ? kDepth : depth, tall = kHeight != 0 ? kHeight : height;
  uint by = w_at + c * channels * uint(deep * tall * kWidth);
  const int d0 = od * strides[0] - pads[0], h0 = oh * strides[1] - pads[1];
  find_columns(ow * kStride - pads[2], in_size[2]);
  const ivec3 in_sizes = ivec3(in_size[0], in_size[1], in_size[2]), step = ivec3(dilations[0], dilations[1], 0);
  const uint all_channels = channels;
  float sum[kPixels];
  [[unroll]] for (int n = 0; n < kPixels; n++) sum[n] = 0.0;
  for (uint k = 0; k < all_channels; k++) {
    for (int a = 0; a < deep; a++) {
      const int d = d0 + a * step.x;
      for (int b = 0; b < tall; b++) {
        const int h = h0 + b * step.y;
        if (d < 0 || d >= in_sizes.x || h < 0 || h >= in_sizes.y) {
          by += uint(kWidth);
          continue;
        }
        float v[kSpan];
        read_columns(from + uint((d * in_sizes.y + h) * in_sizes.z), v);
        [[unroll]] for (int e = 0; e < kWidth; e++) {
          const float weight = float(w[by++]);
          [[unroll]] for (int n = 0; n < kPixels; n++) sum[n] += v[n * kStride + e * kDilation] * weight;
        }
      }
    }
    from += in_plane;
  }
  // A driver takes long to compile what is unrolled. The sums move up by one instead, so that their indices stay constant.
  const float of_channel = has_bias() ? float(bias[bias_at + c]) : 0.0;
  const vec2 norm = norm_of(c);
  uint to = uint(row * out_size[2] + ow);
  [[dont_unroll]] for (int n = ow; n < min(ow + kPixels, out_size[2]); n++) {
    float v = sum[0] + of_channel;
    if (has_addend()) v += float(addend[addend_at + to]);
    y[y_at + to] = T(normed(applied(v), norm));
    to++;
    [[unroll]] for (int m = 0; m < kPixels - 1; m++) sum[m] = sum[m + 1];
  }
}
