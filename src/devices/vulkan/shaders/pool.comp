#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Pooling. With kWide a whole workgroup computes one element, otherwise each invocation computes one.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kKind = POOL_MAX;
layout(constant_id = 1) const bool kWide = false;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, count;
  int in_size[3], out_size[3], kernel[3], strides[3], pads[3];
};

shared float part[256];

float combined(float a, float b) {
  if (kKind == POOL_MAX) return b > a || isnan(b) ? b : a;
  return a + b;
}

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint i = kWide ? gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x : index();
  if (i >= count) return;
  const int ow = int(i) % out_size[2], row = int(i) / out_size[2];
  const int oh = row % out_size[1], slice = row / out_size[1];
  const ivec3 corner = ivec3(slice % out_size[0] * strides[0] - pads[0], oh * strides[1] - pads[1],
                             ow * strides[2] - pads[2]);
  const uint base = x_at + uint(slice / out_size[0]) * uint(in_size[0] * in_size[1] * in_size[2]);
  const ivec3 from = max(corner, ivec3(0));
  const ivec3 to = min(corner + ivec3(kernel[0], kernel[1], kernel[2]), ivec3(in_size[0], in_size[1], in_size[2]));
  const ivec3 size = max(to - from, ivec3(0));
  const int inside = size.x * size.y * size.z;
  float value = kKind == POOL_MAX ? uintBitsToFloat(0xff800000u) : 0.0;
  if (kWide) {
    for (int e = int(lane); e < inside; e += 256) {
      const ivec3 at = from + ivec3(e / (size.y * size.z), e / size.z % size.y, e % size.z);
      const float v = float(x[base + uint((at.x * in_size[1] + at.y) * in_size[2] + at.z)]);
      value = combined(value, kKind == POOL_L2 ? v * v : v);
    }
    part[lane] = value;
    barrier();
    for (uint n = 128; n > 0; n /= 2) {
      if (lane < n) part[lane] = combined(part[lane], part[lane + n]);
      barrier();
    }
    if (lane != 0) return;
    value = part[0];
  } else {
    for (int d = from.x; d < to.x; d++)
      for (int h = from.y; h < to.y; h++)
        for (int w = from.z; w < to.z; w++) {
          const float v = float(x[base + uint((d * in_size[1] + h) * in_size[2] + w)]);
          value = combined(value, kKind == POOL_L2 ? v * v : v);
        }
  }
  if (kKind == POOL_MEAN) value /= float(kernel[0] * kernel[1] * kernel[2]);
  if (kKind == POOL_MEAN_INSIDE) value = inside > 0 ? value / float(inside) : 0.0;
  if (kKind == POOL_L2) value = sqrt(value);
  y[y_at + i] = T(value);
}
