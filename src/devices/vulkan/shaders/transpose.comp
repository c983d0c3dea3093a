#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Transposes squares of 32 by 32 elements in shared memory, so that both reads and writes are contiguous.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kRank = 0;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint x_at, y_at;
  uint x_first, y_first;
  uint columns, rows;  // neighbors in x and in y
  uint x_row, y_column;
  uint squares;
  // The other dimensions, the innermost first. Steps may be negative.
  uint size[5];
  int x_step[5];
  int y_step[5];
};

shared V square[32][33];

void main() {
  const uint across = (columns + 31) / 32, down = (rows + 31) / 32;
  uint rest = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (rest >= squares) return;
  const uint column = rest % across * 32;
  rest /= across;
  const uint row = rest % down * 32;
  rest /= down;
  int from = int(x_at + x_first), to = int(y_at + y_first);
  [[unroll]] for (uint d = 0; d < kRank; d++) {
    const uint k = rest % size[d];
    rest /= size[d];
    from += int(k) * x_step[d];
    to += int(k) * y_step[d];
  }
  const uint a = gl_LocalInvocationID.x % 32, b = gl_LocalInvocationID.x / 32;
  [[unroll]] for (uint i = b; i < 32; i += 8)
    if (column + a < columns && row + i < rows) square[i][a] = V(x[from + int((row + i) * x_row + column + a)]);
  barrier();
  [[unroll]] for (uint i = b; i < 32; i += 8)
    if (row + a < rows && column + i < columns) y[to + int((column + i) * y_column + row + a)] = T(square[a][i]);
}
