#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// Elements of the result with the same remainders by the strides (a phase) use the same taps: each phase is a convolution
// without strides, which reads x backwards.

layout(constant_id = 0) const uint kKernelDepth = 1;
layout(constant_id = 1) const uint kKernelHeight = 1;
layout(constant_id = 2) const uint kKernelWidth = 1;
layout(constant_id = 3) const uint kStrideDepth = 1;
layout(constant_id = 4) const uint kStrideHeight = 1;
layout(constant_id = 5) const uint kStrideWidth = 1;
layout(constant_id = 6) const bool kBias = false;
layout(constant_id = 7) const uint kThen = 0;
layout(constant_id = 8) const uint kLast = 0;
layout(constant_id = 9) const uint kTile = 64;
layout(local_size_x_id = 10) in;
layout(constant_id = 11) const uint kSlices = 1;
layout(constant_id = 12) const bool kNorm = false;
const uint kParts = 1;
// The most taps of a phase.
const uint kDepth = (kKernelDepth + kStrideDepth - 1) / kStrideDepth;
const uint kHeight = (kKernelHeight + kStrideHeight - 1) / kStrideHeight;
const uint kWidth = (kKernelWidth + kStrideWidth - 1) / kStrideWidth;
const bool kPlain = false;
const uint has = HAS_FUNCTIONS | (kBias ? HAS_BIAS : 0) | (kNorm ? HAS_NORM : 0);
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer W { T2X4 w[]; };
layout(binding = 2) readonly buffer B { T bias[]; };
layout(binding = 3) writeonly buffer Y { T y[]; };
layout(binding = 3) writeonly buffer Z { float partial[]; };
layout(binding = 4) readonly buffer N { vec2 norms[]; };
layout(push_constant) uniform P {
  uint x_at, w_at, bias_at, y_at, norms_at;
  float a1, b1, a2, b2;
  uint channels, made, groups;  // channels of a group, in x and y
  int in_size[3], out_size[3], pads[3];
};
const uint addend_at = 0;
#define addend x

const ivec3 kStrides = ivec3(kStrideDepth, kStrideHeight, kStrideWidth);
const ivec3 kKernel = ivec3(kKernelDepth, kKernelHeight, kKernelWidth);
ivec3 phase, phase_size;

ivec3 first_tap() { return (phase + ivec3(pads[0], pads[1], pads[2])) % kStrides; }
bool has_tap(ivec3 tap) { return all(lessThan(first_tap() + tap * kStrides, kKernel)); }
uint stored_at(int p) {
  const ivec3 at = ivec3(p / phase_size.z / phase_size.y, p / phase_size.z % phase_size.y, p % phase_size.z) * kStrides;
  return uint(((at.x + phase.x) * out_size[1] + at.y + phase.y) * out_size[2] + at.z + phase.z);
}
#include "conv_tile.glsl"

void main() {
  const uint phases = kStrideDepth * kStrideHeight * kStrideWidth;
  const uint plane = gl_WorkGroupID.z / phases, number = gl_WorkGroupID.z % phases;
  phase = ivec3(number / (kStrideHeight * kStrideWidth), number / kStrideWidth % kStrideHeight, number % kStrideWidth);
  const ivec3 size = ivec3(out_size[0], out_size[1], out_size[2]);
  phase_size = max((size - phase + kStrides - 1) / kStrides, ivec3(0));
  const ivec3 base = (phase + ivec3(pads[0], pads[1], pads[2])) / kStrides;
  convolve(plane, number * groups + plane % groups, ivec3(1), ivec3(-1), -base, phase_size, size);
}
