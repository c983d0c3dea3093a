#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// variants: f32 f16 f32_f16
// conv_depthwise.comp for devices whose shared memory is no faster than buffers: only the depthwise convolution's results,
// which all channels of the result need, are kept there. A workgroup computes all channels of kSegments stretches of
// kPixels neighbors of a row, an invocation 8 channels of one.

layout(constant_id = 0) const int kHeight = 1;  // the depthwise kernel's sizes
layout(constant_id = 1) const int kWidth = 1;
layout(constant_id = 2) const bool kInnerBias = false;  // of the depthwise convolution
layout(constant_id = 3) const uint kInnerThen = 0;
layout(constant_id = 4) const uint kInnerLast = 0;
layout(constant_id = 5) const bool kBias = false;
layout(constant_id = 6) const bool kAddend = false;
layout(constant_id = 7) const uint kThen = 0;
layout(constant_id = 8) const uint kLast = 0;
layout(constant_id = 9) const int kPixels = 8;
layout(constant_id = 10) const int kStride = 1;  // along rows, as is kDilation
layout(constant_id = 11) const int kDilation = 1;
layout(constant_id = 12) const uint kSegments = 8;
layout(constant_id = 13) const uint kEights = 1;  // of channels of the result
layout(constant_id = 14) const uint kTimes = 1;   // channels of x that an invocation convolves at a time
layout(local_size_x_id = 15) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer W { T2X4 w[]; };  // [channels, made / 4] of four
layout(binding = 2) readonly buffer B { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
layout(binding = 5) readonly buffer D { T inner[]; };
layout(binding = 6) readonly buffer E { T inner_bias[]; };
#include "depthwise.glsl"
#include "columns.glsl"

const uint kAtOnce = kEights * kTimes;  // channels of x
shared vec4 made_of_x[kAtOnce * kSegments * 2];

void main() {
  const uint t = gl_LocalInvocationID.x, image = gl_WorkGroupID.z, segment = t % kSegments, eight = t / kSegments;
  const uint rows4 = (made + 3) / 4, row4 = eight * 2, next4 = min(row4 + 1, rows4 - 1);
  const int in_row = (out_size[1] + kPixels - 1) / kPixels;
  const int i = int(gl_WorkGroupID.x * kSegments + segment), oh = min(i / in_row, out_size[0] - 1);
  const int ow = i % in_row * kPixels, h0 = oh * strides[0] - pads[0];
  const uint pixels = uint(out_size[0] * out_size[1]), in_plane = uint(in_size[0] * in_size[1]);
  find_columns(ow * kStride - pads[1], in_size[1]);

  float sum[8 * kPixels];
  [[unroll]] for (int n = 0; n < 8 * kPixels; n++) sum[n] = 0.0;
  for (uint k0 = 0; k0 < channels; k0 += kAtOnce) {
    [[dont_unroll]] for (uint j = 0; j < kTimes; j++) {
      const uint at = j * kEights + eight, k = k0 + at;
      float v[8];
      [[unroll]] for (int n = 0; n < 8; n++) v[n] = 0.0;
      if (k < channels) {
        const uint plane = x_at + (image * channels + k) * in_plane;
        uint by = inner_at + k * uint(kHeight * kWidth);
        [[dont_unroll]] for (int a = 0; a < kHeight; a++, by += uint(kWidth)) {
          const int h = h0 + a * dilations[0];
          if (h < 0 || h >= in_size[0]) continue;
          float read[kSpan];
          read_columns(plane + uint(h * in_size[1]), read);
          [[unroll]] for (int e = 0; e < kWidth; e++) {
            const float weight = float(inner[by + uint(e)]);
            [[unroll]] for (int n = 0; n < kPixels; n++) v[n] += read[n * kStride + e * kDilation] * weight;
          }
        }
        const float b = kInnerBias ? float(inner_bias[inner_bias_at + k]) : 0.0;
        [[unroll]] for (int n = 0; n < kPixels; n++)
          v[n] = stored(function_of(kInnerLast, function_of(kInnerThen, v[n] + b, c1, d1), c2, d2));
      }
      const uint to = (at * kSegments + segment) * 2;
      made_of_x[to] = vec4(v[0], v[1], v[2], v[3]);
      made_of_x[to + 1] = vec4(v[4], v[5], v[6], v[7]);
    }
    barrier();
    for (uint at = 0; at < min(kAtOnce, channels - k0); at++) {
      const uint from = (at * kSegments + segment) * 2, by = w_at + (k0 + at) * rows4;
      const vec4 values[2] = {made_of_x[from], made_of_x[from + 1]};
      const vec4 weights[2] = {vec4(w[by + row4]), vec4(w[by + next4])};
      [[unroll]] for (int r = 0; r < 8; r++)
        [[unroll]] for (int n = 0; n < kPixels; n++)
          sum[r * kPixels + n] += weights[r / 4][r % 4] * values[n / 4][n % 4];
    }
    barrier();
  }

  if (i >= in_row * out_size[0]) return;
  // Not unrolled, which would take a driver long to compile: sums move up row by row.
  [[dont_unroll]] for (uint r = 0; r < 8; r++) {
    const uint row = row4 * 4 + r;
    if (row >= made) break;
    const float b = kBias ? float(bias[bias_at + row]) : 0.0;
    const uint to = (image * made + row) * pixels + uint(oh * out_size[1] + ow);
    [[unroll]] for (int n = 0; n < kPixels; n++) {
      if (ow + n >= out_size[1]) break;
      float v = sum[n] + b;
      if (kAddend) v += float(addend[addend_at + to + uint(n)]);
      y[y_at + to + uint(n)] = T(function_of(kLast, function_of(kThen, v, a1, b1), a2, b2));
    }
    [[unroll]] for (int n = 0; n < 7 * kPixels; n++) sum[n] = sum[n + kPixels];
  }
}
