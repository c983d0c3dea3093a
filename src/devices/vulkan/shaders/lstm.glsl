#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "rows.glsl"
// variants: f32 f32_f16
// One step of an LSTM: `gates` holds the products with x and the biases. Gates are in the order input, forget, output,
// cell. T2 is the weights' type.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kRecurrent = 0;
layout(constant_id = 1) const uint kCell = 0;
layout(constant_id = 2) const uint kActivation = 0;
layout(constant_id = 3) const bool kPeephole = false;
layout(constant_id = 4) const bool kStored = false;  // whether y takes this step
layout(binding = 0) readonly buffer G { float gates[]; };
layout(binding = 1) readonly buffer W { T2 weight[]; };
layout(binding = 2) readonly buffer E { float peephole[]; };
layout(binding = 3) readonly buffer H { float h[]; };
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
  const uint lane = gl_LocalInvocationID.x % ROW_LANES, row = gl_WorkGroupID.y;
  const uint i = gl_WorkGroupID.x * 8 + gl_LocalInvocationID.x / ROW_LANES;
  vec4 sum = vec4(0.0);
  if (i < hidden) {
    const uint step = hidden * hidden;
    for (uint k = lane; k < hidden; k += ROW_LANES) {
      const uint at = weight_at + i * hidden + k;
      sum += h[h_at + row * h_row + k] *
             vec4(weight[at], weight[at + step], weight[at + 2 * step], weight[at + 3 * step]);
    }
  }
  sum = sum_of_row(sum);
  if (lane != 0 || i >= hidden) return;
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
