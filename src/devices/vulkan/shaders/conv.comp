#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"

layout(constant_id = 0) const uint kDepth = 1;  // the kernel's sizes
layout(constant_id = 1) const uint kHeight = 1;
layout(constant_id = 2) const uint kWidth = 1;
layout(constant_id = 3) const bool kPlain = false;  // a kernel of 1, no strides and no padding
layout(constant_id = 4) const uint kThen = 0;
layout(constant_id = 5) const uint kLast = 0;
layout(constant_id = 6) const uint kTile = 64;
layout(local_size_x_id = 7) in;
layout(constant_id = 8) const uint kSlices = 1;
layout(constant_id = 9) const uint kParts = 1;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer W { T2X4 w[]; };
layout(binding = 2) readonly buffer B { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
layout(binding = 4) writeonly buffer Z { float partial[]; };
// For weights that are bytes: (byte - offset) * scale. The buffer has [channels / 4] times four scales and four offsets.
layout(binding = 5) readonly buffer Q { vec4 scales[]; };
layout(binding = 5) readonly buffer N { vec2 norms[]; };  // for other weights
#define norms_at scales_at
layout(push_constant) uniform P {
  uint x_at, w_at, bias_at, addend_at, y_at, scales_at;
  float a1, b1, a2, b2;
  uint channels, made, groups;  // channels of a group, in x and y
  int in_size[3], out_size[3], strides[3], dilations[3], pads[3];
  uint has;
};

bool has_tap(ivec3 tap) { return true; }
uint stored_at(int p) { return uint(p); }
#include "conv_tile.glsl"

void main() {
  const uint plane = entry();
  const ivec3 size = ivec3(out_size[0], out_size[1], out_size[2]);
  convolve(plane, plane % groups, ivec3(strides[0], strides[1], strides[2]),
           ivec3(dilations[0], dilations[1], dilations[2]), ivec3(pads[0], pads[1], pads[2]), size, size);
}
