#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// conv_depthwise.comp for devices whose shared memory is no faster than buffers. Shared memory holds only the results of
// the depthwise convolution, because all output channels need them. A workgroup computes all channels of `segments` runs
// of kPixels adjacent pixels of a row. An invocation computes 8 channels of one run. Weights are [made / 8, channels] of
// eight.

layout(constant_id = 0) const int kWidth = 1;  // size of the depthwise kernel along rows
layout(constant_id = 1) const bool kInnerBias = false;  // of the depthwise convolution
layout(constant_id = 2) const uint kInnerThen = 0;
layout(constant_id = 3) const uint kInnerLast = 0;
layout(constant_id = 4) const uint kThen = 0;
layout(constant_id = 5) const uint kLast = 0;
layout(constant_id = 6) const int kPixels = 8;
layout(constant_id = 7) const int kStride = 1;  // along rows, as is kDilation
layout(constant_id = 8) const int kDilation = 1;
layout(local_size_x_id = 9) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer W { T2X4 w[]; };
layout(binding = 2) readonly buffer B { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
layout(binding = 5) readonly buffer D { T inner[]; };
layout(binding = 6) readonly buffer E { T inner_bias[]; };
layout(binding = 7) readonly buffer N { vec2 norms[]; };
#include "depthwise.glsl"
#include "columns.glsl"

shared vec4 made_of_x[512];  // of eights * times channels of x: two for each segment

void main() {
  const uint t = gl_LocalInvocationID.x, image = gl_WorkGroupID.z, each = segments, rows8 = (made + 7) / 8, again = times;
  const uint eight = t / each, segment = t - eight * each, at_once = rows8 * again, all_channels = channels;
  const ivec2 in_sizes = ivec2(in_size[0], in_size[1]);
  const int in_row = (out_size[1] + kPixels - 1) / kPixels;
  const int i = int(gl_WorkGroupID.x * each + segment), below = i / in_row, oh = min(below, out_size[0] - 1);
  const int ow = (i - below * in_row) * kPixels, h0 = oh * strides[0] - pads[0], tall = height, down = dilations[0];
  const uint pixels = uint(out_size[0] * out_size[1]), in_plane = uint(in_sizes.x * in_sizes.y);
  const uint x_base = x_at + image * all_channels * in_plane, inner_base = inner_at, bias_base = inner_bias_at;
  const uint w_base = w_at + eight * all_channels * 2;
  const vec4 then = vec4(c1, d1, c2, d2);
  // To limit the number of compiled workgroup sizes, a workgroup may have more invocations than channels need.
  const bool works = eight < rows8;
  const uint mine = works ? again : 0;
  find_columns(ow * kStride - pads[1], in_sizes.y);

  float sum[8 * kPixels];
  [[unroll]] for (int n = 0; n < 8 * kPixels; n++) sum[n] = 0.0;
  for (uint k0 = 0; k0 < all_channels; k0 += at_once) {
    [[dont_unroll]] for (uint j = 0; j < mine; j++) {
      const uint at = j * rows8 + eight, k = k0 + at;
      float v[8];
      [[unroll]] for (int n = 0; n < 8; n++) v[n] = 0.0;
      if (k < all_channels) {
        uint by = inner_base + k * uint(tall * kWidth);
        [[dont_unroll]] for (int a = 0; a < tall; a++, by += uint(kWidth)) {
          const int h = h0 + a * down;
          if (h < 0 || h >= in_sizes.x) continue;
          float read[kSpan];
          read_columns(x_base + k * in_plane + uint(h * in_sizes.y), read);
          [[unroll]] for (int e = 0; e < kWidth; e++) {
            const float weight = float(inner[by + uint(e)]);
            [[unroll]] for (int n = 0; n < kPixels; n++) v[n] += read[n * kStride + e * kDilation] * weight;
          }
        }
        const float b = kInnerBias ? float(inner_bias[bias_base + k]) : 0.0;
        [[unroll]] for (int n = 0; n < kPixels; n++)
          v[n] = stored(function_of(kInnerLast, function_of(kInnerThen, v[n] + b, then.x, then.y), then.z, then.w));
      }
      const uint to = (at * each + segment) * 2;
      made_of_x[to] = vec4(v[0], v[1], v[2], v[3]);
      made_of_x[to + 1] = vec4(v[4], v[5], v[6], v[7]);
    }
    barrier();
    const uint made_now = works ? min(at_once, all_channels - k0) : 0;
    for (uint at = 0; at < made_now; at++) {
      const uint from = (at * each + segment) * 2, by = w_base + (k0 + at) * 2;
      const vec4 values[2] = {made_of_x[from], made_of_x[from + 1]};
      const vec4 weights[2] = {vec4(w[by]), vec4(w[by + 1])};
      [[unroll]] for (int r = 0; r < 8; r++)
        [[unroll]] for (int n = 0; n < kPixels; n++)
          sum[r * kPixels + n] += weights[r / 4][r % 4] * values[n / 4][n % 4];
    }
    barrier();
  }

  if (!works || i >= in_row * out_size[0]) return;
  // Drivers take long to compile unrolled loops. Instead, the sums move up by one, so that their indices stay constant.
  [[dont_unroll]] for (uint row = eight * 8; row < min(eight * 8 + 8, made); row++) {
    const float b = has_bias() ? float(bias[bias_at + row]) : 0.0;
    const vec2 norm = norm_of(row);
    uint to = (image * made + row) * pixels + uint(oh * out_size[1] + ow);
    float results[kPixels];
    [[unroll]] for (int n = 0; n < kPixels; n++) results[n] = sum[n] + b;
    [[dont_unroll]] for (int n = ow; n < min(ow + kPixels, out_size[1]); n++) {
      float v = results[0];
      if (has_addend()) v += float(addend[addend_at + to]);
      y[y_at + to] = T(normed(applied(v), norm));
      to++;
      [[unroll]] for (int m = 0; m < kPixels - 1; m++) results[m] = results[m + 1];
    }
    [[unroll]] for (int n = 0; n < 7 * kPixels; n++) sum[n] = sum[n + kPixels];
  }
}
