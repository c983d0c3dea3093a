#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "boxes.glsl"
// The gradient of a crop_resize's x, whose planes are divided into bands of rows: one invocation adds all samples of a
// band in their order.

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer B { float boxes[]; };
layout(binding = 1) readonly buffer I { int images[]; };
layout(binding = 2) readonly buffer D { float dy[]; };
layout(binding = 3) buffer Y { float dx[]; };
layout(push_constant) uniform P {
  uint b_at, i_at, dy_at, dx_at, count;
  int channels, height, width, to_height, to_width, box_count, bands;
  float scale, row_scale, column_scale;
};

void main() {
  const uint e = index();
  if (e >= count) return;
  const int plane = int(e) / bands, band = int(e) % bands, channel = plane % channels, image = plane / channels;
  const int begin = height * band / bands, end = height * (band + 1) / bands;
  const uint to = dx_at + uint(plane * height * width);
  for (int i = begin * width; i < end * width; i++) dx[to + uint(i)] = 0.0;
  for (int n = 0; n < box_count; n++) {
    if (images[i_at + uint(n)] != image) continue;
    const uint at = b_at + uint(n) * 4;
    const vec4 box = sides(vec4(boxes[at], boxes[at + 1], boxes[at + 2], boxes[at + 3]) * scale);
    for (int i = 0; i < to_height; i++) {
      const float v = position(box.x * row_scale, box.z * row_scale, to_height, i);
      if (!inside(v, height)) continue;
      const float vy = clamp(v, 0.0, float(height - 1)), down = vy - floor(vy);
      const int top = int(vy);
      if (top + 1 < begin || top >= end) continue;
      for (int j = 0; j < to_width; j++) {
        const float u = position(box.y * column_scale, box.w * column_scale, to_width, j);
        if (!inside(u, width)) continue;
        const float ux = clamp(u, 0.0, float(width - 1)), across = ux - floor(ux);
        const int left = int(ux);
        const float d = dy[dy_at + uint(((n * channels + channel) * to_height + i) * to_width + j)];
        for (int k = 0; k < 4; k++) {
          // A second pixel with a share of 0 gets nothing, whatever the gradient is.
          if ((k / 2 == 1 && down == 0.0) || (k % 2 == 1 && across == 0.0)) continue;
          const int row = top + k / 2;
          if (row < begin || row >= end) continue;
          const float share = (k / 2 == 1 ? down : 1.0 - down) * (k % 2 == 1 ? across : 1.0 - across);
          dx[to + uint(row * width + left + k % 2)] += d * share;
        }
      }
    }
  }
}
