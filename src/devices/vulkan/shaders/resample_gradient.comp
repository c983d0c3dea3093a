#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "sample.glsl"
// The gradient of a sample's x, whose planes are divided into bands of rows: one invocation adds all samples of a band in
// their order. Or that of the coordinates, one sample for each invocation.

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kCoordinates = false;
layout(constant_id = 1) const bool kLinear = true;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer C { float coordinates[]; };
layout(binding = 2) readonly buffer D { float dy[]; };
layout(binding = 3) buffer Y { float to[]; };
layout(push_constant) uniform P {
  uint x_at, c_at, dy_at, to_at, count;
  int height, width, area, channels, bands;
  float pad;
};

// The pixel of a sample: the nearest one, or the one at the top left. False if the sample reads no pixel.
bool found(uint sample_, out int row, out int column, out float down, out float across) {
  const float u = to_pixel(coordinates[c_at + 2 * sample_], width);
  const float v = to_pixel(coordinates[c_at + 2 * sample_ + 1], height);
  if (!(u > -1.0 && v > -1.0 && u < float(width) && v < float(height))) return false;
  const float left = kLinear ? floor(u) : roundEven(u), top = kLinear ? floor(v) : roundEven(v);
  row = int(top);
  column = int(left);
  down = kLinear ? v - top : 0.0;
  across = kLinear ? u - left : 0.0;
  return true;
}

void add_band(uint e) {
  const int plane = int(e) / bands, band = int(e) % bands;
  const int begin = height * band / bands, end = height * (band + 1) / bands;
  const uint to_plane = to_at + uint(plane * height * width), from = dy_at + uint(plane) * uint(area);
  for (int i = begin * width; i < end * width; i++) to[to_plane + uint(i)] = 0.0;
  const uint first = uint(plane / channels) * uint(area);
  for (uint i = 0; i < uint(area); i++) {
    int row, column;
    float down, across;
    if (!found(first + i, row, column, down, across)) continue;
    if (row + (kLinear ? 1 : 0) < begin || row >= end) continue;
    const float d = dy[from + i];
    for (int k = 0; k < (kLinear ? 4 : 1); k++) {
      const int y = row + k / 2, x_ = column + k % 2;
      if (y < begin || y >= end || x_ < 0 || x_ >= width) continue;
      const float share = (k / 2 == 1 ? down : 1.0 - down) * (k % 2 == 1 ? across : 1.0 - across);
      to[to_plane + uint(y * width + x_)] += d * share;
    }
  }
}

float read(uint plane, int row, int column) {
  if (row < 0 || row >= height || column < 0 || column >= width) return pad;
  return x[x_at + (plane * uint(height) + uint(row)) * uint(width) + uint(column)];
}

void sum_channels(uint e) {
  const uint image = e / uint(area), at = e % uint(area);
  int row, column;
  float down, across, du = 0.0, dv = 0.0;
  if (kLinear && found(e, row, column, down, across)) {
    for (uint c = 0; c < uint(channels); c++) {
      const uint plane = image * uint(channels) + c;
      const float d = dy[dy_at + plane * uint(area) + at];
      const float a = read(plane, row, column), b = read(plane, row, column + 1);
      const float below_a = read(plane, row + 1, column), below_b = read(plane, row + 1, column + 1);
      du += d * ((b - a) * (1.0 - down) + (below_b - below_a) * down);
      dv += d * ((below_a - a) * (1.0 - across) + (below_b - b) * across);
    }
    du *= slope_of(coordinates[c_at + 2 * e], width);
    dv *= slope_of(coordinates[c_at + 2 * e + 1], height);
  }
  to[to_at + 2 * e] = du;
  to[to_at + 2 * e + 1] = dv;
}

void main() {
  const uint e = index();
  if (e >= count) return;
  if (kCoordinates)
    sum_channels(e);
  else
    add_band(e);
}
