#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kImage = BOX_OF_EVERY_IMAGE;
layout(constant_id = 1) const bool kHeightFirst = true;
layout(constant_id = 2) const bool kCenter = false;
layout(constant_id = 3) const uint kSampling = 0;  // ops::Sampling
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer B { T boxes[]; };
layout(binding = 2) readonly buffer I { int images[]; };
layout(binding = 3) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, b_at, i_at, y_at, count;
  int batch, channels, height, width, to_height, to_width, entries;
  float scale, row_scale, column_scale, pad;
};

float point(float extent, int out_, int i) {
  const float n = float(out_), at = float(i);
  switch (kSampling) {
    case 0: return at * extent / n;
    case 1: return out_ > 1 ? at * (extent - 1.0) / (n - 1.0) : 0.0;
    case 2: return out_ > 1 ? at * (extent - 1.0) / (n - 1.0) : (extent - 1.0) / 2.0;
    case 3: return (at + 0.5) * max(1.0, extent - 1.0) / n;
    default: return (at + 0.5) * extent / n - 0.5;
  }
}

float position(float start, float end, int samples, int i) {
  const float g = point(abs(end - start) + 1.0, samples, i);
  return end >= start ? start + g : start - g;
}

bool inside(float at, int n) {
  // Rounding of float32 must not leave the image.
  const float slack = max(1e-5, float(n) * 4e-7);
  return at >= -slack && at <= float(n - 1) + slack;
}

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
  const int at = first + (entries == 5 ? 1 : 0), row = kHeightFirst ? 0 : 1;
  float h0 = float(boxes[at + row]) * scale, w0 = float(boxes[at + 1 - row]) * scale;
  float h1 = float(boxes[at + row + 2]) * scale, w1 = float(boxes[at + 3 - row]) * scale;
  if (kCenter) {
    const float half_h = h1 / 2.0, half_w = w1 / 2.0;
    h1 = h0 + half_h;
    h0 -= half_h;
    w1 = w0 + half_w;
    w0 -= half_w;
  }
  const float v = position(h0 * row_scale, h1 * row_scale, to_height, i);
  const float u = position(w0 * column_scale, w1 * column_scale, to_width, j);
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
