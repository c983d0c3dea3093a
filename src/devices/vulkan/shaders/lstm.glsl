// SPDX-License-Identifier: Apache-2.0
#include "step.glsl"
// One step of an LSTM. Gates are in the order input, forget, output, cell.

layout(constant_id = 0) const uint kRecurrent = 0;
layout(constant_id = 1) const uint kCell = 0;
layout(constant_id = 2) const uint kActivation = 0;
layout(constant_id = 3) const bool kPeephole = false;
layout(binding = 2) readonly buffer E { float peephole[]; };
layout(binding = 4) readonly buffer C { float c[]; };
layout(binding = 5) writeonly buffer H2 { float h_next[]; };
layout(binding = 6) writeonly buffer C2 { float c_next[]; };
layout(binding = 7) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P {
  uint gates_at, weight_at, peephole_at, h_at, c_at, h_next_at, c_next_at, y_at;
  uint hidden, h_row, c_row, h_next_row, c_next_row, y_row;
  float clip, a[3], b[3];
};

void main() {
  const uint place = place_in_row(), i = row_of_group(), row = gl_WorkGroupID.y;
  const uint step = hidden * hidden, first = weight_at + i * hidden, state = h_at + row * h_row;
  vec4 sum = vec4(0.0);
  if (i < hidden) {
    if (kFours) {
      for (uint k = place * 4; k < hidden; k += ROW_LANES * 4) {
        const vec4 v = h4[(state + k) / 4];
        [[unroll]] for (uint g = 0; g < 4; g++) sum[g] += dot(v, vec4(weight4[(first + g * step + k) / 4]));
      }
    } else {
      for (uint k = place; k < hidden; k += ROW_LANES) {
        const float v = h[state + k];
        [[unroll]] for (uint g = 0; g < 4; g++) sum[g] += v * float(weight[first + g * step + k]);
      }
    }
  }
  sum = sum_of_row(sum);
  if (place != 0 || i >= hidden) return;
  const uint from = gates_at + row * 4 * hidden + i;
  vec4 z = sum + vec4(gates[from], gates[from + hidden], gates[from + 2 * hidden], gates[from + 3 * hidden]);
  const float before = c[c_at + row * c_row + i];
  if (kPeephole) z.xy += before * vec2(peephole[peephole_at + i], peephole[peephole_at + hidden + i]);
  const float g = function_of(kRecurrent, z.x, a[0], b[0]), f = function_of(kRecurrent, z.y, a[0], b[0]);
  const float cell = f * before + g * function_of(kCell, z.w, a[1], b[1]);
  const float now = isnan(cell) ? cell : clamp(cell, -clip, clip);
  if (kPeephole) z.z += now * peephole[peephole_at + 2 * hidden + i];
  const float made = function_of(kRecurrent, z.z, a[0], b[0]) * function_of(kActivation, now, a[2], b[2]);
  h_next[h_next_at + row * h_next_row + i] = made;
  c_next[c_next_at + row * c_next_row + i] = now;
  if (kStored) y[y_at + row * y_row + i] = made;
}
