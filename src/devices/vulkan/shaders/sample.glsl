// SPDX-License-Identifier: Apache-2.0
// The pixels that coordinates mean.
layout(constant_id = 2) const uint kPadding = SAMPLE_CONSTANT;
layout(constant_id = 3) const uint kRange = SAMPLE_PIXELS;
layout(constant_id = 4) const bool kAlign = false;

// Reflected into [low, high], then clamped.
float reflected(float v, float low, float high, int n) {
  const float span = high - low;
  if (!(span > 0.0) || isnan(v) || isinf(v)) return 0.0;
  const float away = abs(v - low), turns = floor(away / span), rest = away - turns * span;
  return clamp(mod(turns, 2.0) != 0.0 ? high - rest : low + rest, 0.0, float(n - 1));
}

float pixel_of(float v, int n) {
  const float size = float(n);
  if (kRange == SAMPLE_MINUS_ONE_TO_ONE) return kAlign ? (v + 1.0) / 2.0 * (size - 1.0) : ((v + 1.0) * size - 1.0) / 2.0;
  if (kRange == SAMPLE_ZERO_TO_ONE) return kAlign ? v * (size - 1.0) : v * size - 0.5;
  return v;
}

float to_pixel(float v, int n) {
  const float size = float(n);
  v = pixel_of(v, n);
  switch (kPadding) {
    case SAMPLE_BORDER: return v > 0.0 ? min(v, size - 1.0) : 0.0;
    case SAMPLE_REFLECTION: return reflected(v, 0.0, size - 1.0, n);
    case SAMPLE_SYMMETRIC: return reflected(v, -0.5, size - 0.5, n);
    default: return v;
  }
}

float reflected_slope(float v, float low, float high, int n) {
  const float span = high - low;
  if (!(span > 0.0) || isnan(v) || isinf(v)) return 0.0;
  const float away = abs(v - low), turns = floor(away / span), rest = away - turns * span;
  const bool back = mod(turns, 2.0) != 0.0;
  const float at = back ? high - rest : low + rest;
  if (at < 0.0 || at > float(n - 1)) return 0.0;
  return back == (v < low) ? 1.0 : -1.0;
}

// How to_pixel changes with the coordinate.
float slope_of(float v, int n) {
  const float size = float(n), extent = kAlign ? size - 1.0 : size, p = pixel_of(v, n);
  const float scale = kRange == SAMPLE_PIXELS ? 1.0 : kRange == SAMPLE_MINUS_ONE_TO_ONE ? extent / 2.0 : extent;
  switch (kPadding) {
    case SAMPLE_BORDER: return p > 0.0 && p < size - 1.0 ? scale : 0.0;
    case SAMPLE_REFLECTION: return scale * reflected_slope(p, 0.0, size - 1.0, n);
    case SAMPLE_SYMMETRIC: return scale * reflected_slope(p, -0.5, size - 0.5, n);
    default: return scale;
  }
}
