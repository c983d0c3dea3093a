#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// The gradient of a pool: each element of x sums its parts of the windows that contain it.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kKind = POOL_MAX;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer D { T dy[]; };
layout(binding = 2) writeonly buffer Y { T dx[]; };
layout(push_constant) uniform P {
  uint x_at, dy_at, dx_at, count;
  int in_size[3], out_size[3], kernel[3], strides[3], pads[3];
};

ivec3 all_in() { return ivec3(in_size[0], in_size[1], in_size[2]); }
ivec3 all_kernel() { return ivec3(kernel[0], kernel[1], kernel[2]); }
ivec3 all_strides() { return ivec3(strides[0], strides[1], strides[2]); }

int position(ivec3 at) { return (at.x * in_size[1] + at.y) * in_size[2] + at.z; }

// Whether max_pool takes element `own` of the window: the last NaN, else the first of the largest.
bool is_taken(uint plane, ivec3 from, ivec3 to, int own) {
  const float top = float(x[plane + uint(own)]);
  const bool nan = isnan(top);
  for (int d = from.x; d < to.x; d++)
    for (int h = from.y; h < to.y; h++)
      for (int w = from.z; w < to.z; w++) {
        const int other = position(ivec3(d, h, w));
        const float v = float(x[plane + uint(other)]);
        if (nan ? other > own && isnan(v) : isnan(v) || v > top || (v == top && other < own)) return false;
      }
  return true;
}

void main() {
  const uint i = index();
  if (i >= count) return;
  const ivec3 sizes = all_in(), window = all_kernel(), step = all_strides(), pad = ivec3(pads[0], pads[1], pads[2]);
  const int inside = sizes.x * sizes.y * sizes.z, own = int(i) % inside, image = int(i) / inside;
  const ivec3 at = ivec3(own / (sizes.y * sizes.z), own / sizes.z % sizes.y, own % sizes.z) + pad;
  // The windows that contain the element.
  const ivec3 first = max(at - window + step, ivec3(0)) / step;
  const ivec3 last = min(at / step, ivec3(out_size[0], out_size[1], out_size[2]) - 1);
  float sum = 0.0;
  for (int d = first.x; d <= last.x; d++)
    for (int h = first.y; h <= last.y; h++)
      for (int w = first.z; w <= last.z; w++) {
        const ivec3 corner = ivec3(d, h, w) * step - pad;
        const ivec3 from = max(corner, ivec3(0)), to = min(corner + window, sizes), size = to - from;
        const int out_at = ((image * out_size[0] + d) * out_size[1] + h) * out_size[2] + w;
        const float part = float(dy[dy_at + uint(out_at)]);
        if (kKind == POOL_MAX) {
          if (is_taken(x_at + uint(image * inside), from, to, own)) sum += part;
        } else {
          const ivec3 over = kKind == POOL_MEAN_INSIDE ? size : window;
          sum += part / float(over.x * over.y * over.z);
        }
      }
  dx[dx_at + i] = T(sum);
}
