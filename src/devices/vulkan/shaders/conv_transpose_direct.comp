#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// A transposed convolution; each invocation computes one element.

layout(local_size_x = 256) in;
layout(constant_id = 0) const int kDepth = 1;  // the kernel's sizes
layout(constant_id = 1) const int kHeight = 1;
layout(constant_id = 2) const int kWidth = 1;
layout(constant_id = 3) const bool kBias = false;
layout(constant_id = 4) const uint kThen = 0;
layout(constant_id = 5) const uint kLast = 0;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer W { T w[]; };
layout(binding = 2) readonly buffer B { T bias[]; };
layout(binding = 3) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, w_at, bias_at, y_at;
  float a1, b1, a2, b2;
  uint count, channels, made, groups;  // channels of a group, in x and y
  int in_size[3], out_size[3], strides[3], dilations[3], pads[3];
};

// The element of x that a tap reads along a dimension; -1: none.
int source(int at, uint d) { return at >= 0 && at % strides[d] == 0 && at / strides[d] < in_size[d] ? at / strides[d] : -1; }

void main() {
  const uint i = index();
  if (i >= count) return;
  const int ow = int(i) % out_size[2], row = int(i) / out_size[2];
  const int oh = row % out_size[1], slice = row / out_size[1];
  const int od = slice % out_size[0];
  const uint plane = uint(slice / out_size[0]);
  const uint c = plane % (made * groups), group = c / made;
  const uint in_plane = uint(in_size[0] * in_size[1] * in_size[2]), taps = uint(kDepth * kHeight * kWidth);
  const uint from = x_at + plane / made * channels * in_plane;
  const uint by = w_at + (group * channels * made + c % made) * taps;
  float sum = 0.0;
  for (int a = 0; a < kDepth; a++) {
    const int d = source(od + pads[0] - a * dilations[0], 0);
    if (d < 0) continue;
    for (int b = 0; b < kHeight; b++) {
      const int h = source(oh + pads[1] - b * dilations[1], 1);
      if (h < 0) continue;
      for (int e = 0; e < kWidth; e++) {
        const int v = source(ow + pads[2] - e * dilations[2], 2);
        if (v < 0) continue;
        const uint at = from + uint((d * in_size[1] + h) * in_size[2] + v);
        const uint weight = by + uint((a * kHeight + b) * kWidth + e);
        for (uint k = 0; k < channels; k++) sum += float(x[at + k * in_plane]) * float(w[weight + k * made * taps]);
      }
    }
  }
  if (kBias) sum += float(bias[bias_at + c]);
  y[y_at + i] = T(function_of(kLast, function_of(kThen, sum, a1, b1), a2, b2));
}
