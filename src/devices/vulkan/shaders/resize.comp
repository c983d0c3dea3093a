#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Positions are fractions of integers, so that the nearest element is exact.

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kLinear = false;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, count;
  int height, width, to_height, to_width;
  // Output i reads at (times * i + plus) / by.
  int row_times, row_plus, row_by, column_times, column_plus, column_by;
};

struct Tap {
  int low, high;
  float part;
};

Tap tap(int i, int times, int plus, int by, int n) {
  const int at = max(times * i + plus, 0);
  if (!kLinear) return Tap(min(at / by, n - 1), 0, 0.0);
  const int low = at / by;
  if (low >= n - 1) return Tap(n - 1, n - 1, 0.0);
  return Tap(low, low + 1, float(at - low * by) / float(by));
}

// Leaves b out if its weight is 0, because b may be infinite.
V mixed(V a, V b, float part) {
#ifdef IS_INT
  return a;
#else
  return part == 0.0 ? a : a * (1.0 - part) + b * part;
#endif
}

void main() {
  const uint i = index();
  if (i >= count) return;
  const int column = int(i) % to_width, rest = int(i) / to_width;
  const int row = rest % to_height, plane = int(x_at) + rest / to_height * height * width;
  const Tap v = tap(row, row_times, row_plus, row_by, height);
  const Tap h = tap(column, column_times, column_plus, column_by, width);
  const int top = plane + v.low * width, bottom = plane + v.high * width;
  if (!kLinear) {
    y[y_at + i] = x[top + h.low];
    return;
  }
  const V a = mixed(V(x[top + h.low]), V(x[top + h.high]), h.part);
  const V b = mixed(V(x[bottom + h.low]), V(x[bottom + h.high]), h.part);
  y[y_at + i] = T(mixed(a, b, v.part));
}
