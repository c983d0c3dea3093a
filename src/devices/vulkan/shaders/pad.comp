#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kMode = PAD_CONSTANT;
layout(constant_id = 1) const uint kRank = 1;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, count;
  uint constant;  // bits
  // The innermost dimension first: of the result, margins before, and of x.
  int size[6];
  int before[6];
  int extent[6];
};

void main() {
  const uint i = index();
  if (i >= count) return;
  uint rest = i;
  int from = 0, step = 1;
  bool inside = true;
  [[unroll]] for (uint d = 0; d < kRank; d++) {
    const int n = extent[d];
    int k = int(rest % uint(size[d])) - before[d];
    rest /= uint(size[d]);
    if (kMode == PAD_REFLECT) {
      const int period = max(2 * (n - 1), 1);
      k = abs(k) % period;
      k = min(k, period - k) * int(n > 1);
    } else if (kMode == PAD_REPLICATE) {
      k = clamp(k, 0, n - 1);
    } else {
      inside = inside && k >= 0 && k < n;
    }
    from += k * step;
    step *= n;
  }
  if (inside)
    y[y_at + i] = x[int(x_at) + from];
  else
    y[y_at + i] = T(constant);
}
