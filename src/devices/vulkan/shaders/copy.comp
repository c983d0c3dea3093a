#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// variants: u8 u16 u32
// Elements of a grid to those of another: transposes, slices, parts of a concatenation, tiles.

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at, count, rank;
  uint x_first, y_first;
  // The innermost dimension first. Steps of x may be negative.
  uint size[7];
  int x_step[7];
  uint y_step[7];
};

void main() {
  const uint i = index();
  if (i >= count) return;
  uint rest = i, to = y_at + y_first;
  int from = int(x_at + x_first);
  for (uint d = 0; d < rank; d++) {
    const uint k = rest % size[d];
    rest /= size[d];
    from += int(k) * x_step[d];
    to += k * y_step[d];
  }
  y[to] = x[from];
}
