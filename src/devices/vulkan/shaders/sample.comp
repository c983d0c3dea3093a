#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Samples images at given positions, or at the positions that a matrix gives. T2 is the type of positions.

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kMatrix = false;
layout(constant_id = 1) const bool kLinear = true;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer C { T2 positions[]; };
layout(binding = 2) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, c_at, y_at, count;
  int height, width, to_height, to_width, channels;
  uint matrix_step;
  float pad;
};

#include "sample.glsl"

float from_pixel(int i, int n) {
  if (kAlign) return n > 1 ? 2.0 * float(i) / float(n - 1) - 1.0 : 0.0;
  return float(2 * i + 1) / float(n) - 1.0;
}

float read(int plane, int row, int column) {
  if (row < 0 || row >= height || column < 0 || column >= width) return pad;
  return float(x[int(x_at) + (plane * height + row) * width + column]);
}

// Interpolates. Leaves b out if its weight is 0, because b may be infinite.
float mixed(float a, float b, float part) { return part == 0.0 ? a : a * (1.0 - part) + b * part; }

void main() {
  const uint e = index();
  if (e >= count) return;
  const int j = int(e) % to_width, i = int(e) / to_width % to_height, plane = int(e) / to_width / to_height;
  const int image = plane / channels;
  float u, v;
  if (kMatrix) {
    const uint m = c_at + uint(image) * matrix_step;
    const float a = from_pixel(j, to_width), b = from_pixel(i, to_height);
    u = float(positions[m]) * a + float(positions[m + 1]) * b + float(positions[m + 2]);
    v = float(positions[m + 3]) * a + float(positions[m + 4]) * b + float(positions[m + 5]);
  } else {
    const uint at = c_at + uint((image * to_height + i) * to_width + j) * 2;
    u = float(positions[at]);
    v = float(positions[at + 1]);
  }
  u = to_pixel(u, width);
  v = to_pixel(v, height);
  float value = pad;
  if (u > -1.0 && v > -1.0 && u < float(width) && v < float(height)) {
    if (kLinear) {
      const int column = int(floor(u)), row = int(floor(v));
      const float a = u - floor(u), b = v - floor(v);
      value = mixed(mixed(read(plane, row, column), read(plane, row, column + 1), a),
                    mixed(read(plane, row + 1, column), read(plane, row + 1, column + 1), a), b);
    } else {
      value = read(plane, int(roundEven(v)), int(roundEven(u)));
    }
  }
  y[y_at + e] = T(value);
}
