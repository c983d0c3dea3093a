// SPDX-License-Identifier: Apache-2.0
// Where the samples of a box are.
layout(constant_id = 1) const bool kHeightFirst = true;
layout(constant_id = 2) const bool kCenter = false;
layout(constant_id = 3) const uint kSampling = 0;  // ops::Sampling

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

// From the numbers of a box: its top, left, bottom and right.
vec4 sides(vec4 box) {
  if (!kHeightFirst) box = box.yxwz;
  return kCenter ? vec4(box.xy - box.zw / 2.0, box.xy + box.zw / 2.0) : box;
}
