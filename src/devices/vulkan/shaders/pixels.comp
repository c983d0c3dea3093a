#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// The planes of a packed picture (kernel/pixels.h): a header of 4 words, the first of which is the format, and rows. Or
// those of a packed frame of a camera (kernel/packed_frame.h): a header of 32 words, and planes of luma and chroma.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kOrder = 0;  // gray, rgb, bgr
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P { uint x_at, y_at, count; };

const uint kGray8 = 0u, kRgb8 = 1u, kBgra8 = 3u, kGrayFloat = 4u, kGrayHalf = 5u;

const uint kFrame = 16u;  // nv12, nv12_full, i420, i420_full, p010, p010_full

#include "frames.glsl"

float byte_at(uint at) { return float(bitfieldExtract(x[x_at + 4u + at / 4u], int(at % 4u) * 8, 8)); }

void main() {
  const uint i = index();
  if (i >= count) return;
  const uint format = x[x_at];
  if (format >= kFrame) {
    store_frame_pixel(i, format - kFrame);
    return;
  }
  vec3 c;
  if (format == kGray8) {
    c = vec3(byte_at(i));
  } else if (format == kGrayFloat) {
    c = vec3(uintBitsToFloat(x[x_at + 4u + i]));
  } else if (format == kGrayHalf) {
    c = vec3(unpackHalf2x16(x[x_at + 4u + i / 2u])[i % 2u]);
  } else {
    const uint at = i * (format == kRgb8 ? 3u : 4u);
    c = vec3(byte_at(at), byte_at(at + 1u), byte_at(at + 2u));
    if (format == kBgra8) c = c.bgr;
  }
  if (kOrder == 0u) {
    float v = c.r;
    if (format != kGray8 && format < kGrayFloat) {
      precise const float luma = 0.299 * c.r + 0.587 * c.g + 0.114 * c.b;
      v = floor(luma);
      if (luma - v >= 0.5) v += 1.0;
    }
    y[y_at + i] = T(v);
    return;
  }
  if (kOrder == 2u) c = c.bgr;
  y[y_at + i] = T(c.r);
  y[y_at + count + i] = T(c.g);
  y[y_at + 2u * count + i] = T(c.b);
}
