#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "slopes.glsl"
// Steps of an LSTM backwards, but for their products. Gates are in the order input, forget, output, cell: first the
// products, then their values, then their gradients. An invocation computes a unit of a row of the batch.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kStage = LSTM_FORWARD;
layout(constant_id = 1) const uint kRecurrent = 0;
layout(constant_id = 2) const uint kCell = 0;
layout(constant_id = 3) const uint kActivation = 0;
layout(constant_id = 4) const bool kPeephole = false;
layout(constant_id = 5) const bool kCoupled = false;  // the forget gate is 1 minus the input gate
layout(constant_id = 6) const bool kStates = false;   // states are not known
layout(constant_id = 7) const bool kEach = false;     // each state has a gradient
layout(binding = 0) buffer G { float gates[]; };
layout(binding = 1) buffer C { float cells[]; };  // before each step, and after the last
layout(binding = 2) readonly buffer E { float peephole[]; };
layout(binding = 3) writeonly buffer S { float states[]; };
layout(binding = 4) readonly buffer H { float dh[]; };
layout(binding = 5) buffer D { float dc[]; };
layout(binding = 6) readonly buffer Y { float dy[]; };
layout(binding = 7) writeonly buffer E1 { float d_peephole[]; };
layout(push_constant) uniform P {
  uint gates_at, cells_at, peephole_at, states_at, dh_at, dc_at, dy_at, d_peephole_at;
  uint hidden, batch, steps, first, count;
  float clip, a[3], b[3];
};

float peep(uint gate, uint unit) { return kPeephole ? peephole[peephole_at + gate * hidden + unit] : 0.0; }

void forward(uint e) {
  const uint unit = e % hidden, row = e / hidden;
  float c = cells[cells_at + first * batch * hidden + e];
  for (uint t = first; t < first + count; t++) {
    const uint at = gates_at + (t * batch + row) * 4 * hidden + unit;
    float z = gates[at + 2 * hidden];
    const float from_in = gates[at] + c * peep(0, unit), from_forget = gates[at + hidden] + c * peep(1, unit);
    const float in_ = function_of(kRecurrent, from_in, a[0], b[0]);
    const float forget = kCoupled ? 1.0 - in_ : function_of(kRecurrent, from_forget, a[0], b[0]);
    const float fresh = function_of(kCell, gates[at + 3 * hidden], a[1], b[1]);
    c = forget * c + in_ * fresh;
    if (!isnan(c)) c = clamp(c, -clip, clip);
    z = function_of(kRecurrent, z + c * peep(2, unit), a[0], b[0]);
    gates[at] = in_;
    gates[at + hidden] = forget;
    gates[at + 2 * hidden] = z;
    gates[at + 3 * hidden] = fresh;
    cells[cells_at + (t + 1) * batch * hidden + e] = c;
    if (kStates && t + 1 < steps)
      states[states_at + (t + 1) * batch * hidden + e] = z * function_of(kActivation, c, a[2], b[2]);
  }
}

void backward(uint e) {
  const uint unit = e % hidden, row = e / hidden;
  const uint at = gates_at + (first * batch + row) * 4 * hidden + unit, state = first * batch * hidden + e;
  const float c = cells[cells_at + state], next = cells[cells_at + state + batch * hidden];
  const float in_ = gates[at], forget = gates[at + hidden], made = gates[at + 2 * hidden],
              fresh = gates[at + 3 * hidden];
  float d = dh[dh_at + e];
  if (kEach) d += dy[dy_at + state];
  const float squashed = function_of(kActivation, next, a[2], b[2]);
  const float d_out = d * squashed * slope_of(kRecurrent, made, a[0], b[0]);
  float d_cell = dc[dc_at + e] + d * made * slope_of(kActivation, squashed, a[2], b[2]) + d_out * peep(2, unit);
  if (abs(forget * c + in_ * fresh) > clip) d_cell = 0.0;
  const float from_forget = d_cell * c;
  const float d_in = (d_cell * fresh - (kCoupled ? from_forget : 0.0)) * slope_of(kRecurrent, in_, a[0], b[0]);
  const float d_forget = kCoupled ? 0.0 : from_forget * slope_of(kRecurrent, forget, a[0], b[0]);
  dc[dc_at + e] = d_cell * forget + d_in * peep(0, unit) + d_forget * peep(1, unit);
  gates[at] = d_in;
  gates[at + hidden] = d_forget;
  gates[at + 2 * hidden] = d_out;
  gates[at + 3 * hidden] = d_cell * in_ * slope_of(kCell, fresh, a[1], b[1]);
}

// An invocation computes a number of the peephole.
void sum_peephole(uint e) {
  const uint unit = e % hidden, gate = e / hidden, later = gate == 2 ? batch : 0;
  float sum = 0.0;
  for (uint r = 0; kPeephole && r < steps * batch; r++)
    sum += gates[gates_at + r * 4 * hidden + e] * cells[cells_at + (r + later) * hidden + unit];
  d_peephole[d_peephole_at + e] = sum;
}

void main() {
  const uint e = index();
  if (e >= (kStage == LSTM_PEEPHOLE ? 3 : batch) * hidden) return;
  if (kStage == LSTM_FORWARD) forward(e);
  if (kStage == LSTM_BACKWARD) backward(e);
  if (kStage == LSTM_PEEPHOLE) sum_peephole(e);
}
