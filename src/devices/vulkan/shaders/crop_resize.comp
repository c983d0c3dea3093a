#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kImage = BOX_OF_EVERY_IMAGE;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer B { T boxes[]; };
layout(binding = 2) readonly buffer I { int images[]; };
layout(binding = 3) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, b_at, i_at, y_at, count;
  int batch, channels, height, width, to_height, to_width, entries;
  float scale, row_scale, column_scale, pad;
};

#include "boxes.glsl"

float read(int plane, int row, int column) { return float(x[int(x_at) + (plane * height + row) * width + column]); }

void main() {
  const uint e = index();
  if (e >= count) return;
  const int j = int(e) % to_width, i = int(e) / to_width % to_height;
  const int rest = int(e) / to_width / to_height, channel = rest % channels;
  int box = rest / channels, image = 0;
  if (kImage == BOX_OF_EVERY_IMAGE) {
    image = box % batch;
    box /= batch;
  }
  const int first = int(b_at) + box * entries;
  if (kImage == BOX_NAMES_IMAGE) image = int(float(boxes[first]));
  if (kImage == BOX_INDEX_OF_IMAGE) image = images[i_at + box];
  if (kImage == BOX_IS_IMAGE) image = box;
  const int at = first + (entries == 5 ? 1 : 0);
  const vec4 box_at = sides(
      vec4(float(boxes[at]), float(boxes[at + 1]), float(boxes[at + 2]), float(boxes[at + 3])) * scale);
  const float v = position(box_at.x * row_scale, box_at.z * row_scale, to_height, i);
  const float u = position(box_at.y * column_scale, box_at.w * column_scale, to_width, j);
  float value = pad;
  if (inside(v, height) && inside(u, width)) {
    const float vy = clamp(v, 0.0, float(height - 1)), ux = clamp(u, 0.0, float(width - 1));
    const int top = int(vy), left = int(ux), bottom = min(top + 1, height - 1), right = min(left + 1, width - 1);
    const float b = vy - float(top), a = ux - float(left);
    const int plane = image * channels + channel;
    value = (read(plane, top, left) * (1.0 - a) + read(plane, top, right) * a) * (1.0 - b) +
            (read(plane, bottom, left) * (1.0 - a) + read(plane, bottom, right) * a) * b;
  }
  y[y_at + e] = T(value);
}
