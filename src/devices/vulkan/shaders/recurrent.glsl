// SPDX-License-Identifier: Apache-2.0
#include "step.glsl"
// One step of a plain recurrent layer or of a GRU, or a part of one. `bias` holds the biases of the products with the
// state. Gates of a GRU are in the order reset, new, update.

layout(constant_id = 0) const uint kStep = RECURRENT_PLAIN;
layout(constant_id = 1) const uint kRecurrent = 0;
layout(constant_id = 2) const uint kActivation = 0;
layout(constant_id = 3) const bool kBias = false;
layout(binding = 2) readonly buffer B { float bias[]; };
// The result of RECURRENT_GATES, which RECURRENT_NEW reads: for each row of the batch, reset times state, then update.
layout(binding = 4) buffer K { float kept[]; };
layout(binding = 4) buffer K4 { vec4 kept4[]; };
layout(binding = 5) writeonly buffer H2 { float h_next[]; };
layout(binding = 6) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P {
  uint gates_at, weight_at, bias_at, h_at, kept_at, h_next_at, y_at;
  uint hidden;
  float a[2], b[2];
};

float gate(uint row, uint n, uint i, uint of) { return gates[gates_at + (row * of + n) * hidden + i]; }
float bias_of(uint n, uint i) { return kBias ? bias[bias_at + n * hidden + i] : 0.0; }

// Whether a step multiplies the weights of gate g.
bool has_product(uint g) {
  if (kStep == RECURRENT_PLAIN) return g == 0;
  if (kStep == RECURRENT_NEW) return g == 1;
  return kStep == RECURRENT_GRU || g != 1;
}

void main() {
  const uint place = place_in_row(), i = row_of_group(), row = gl_WorkGroupID.y;
  const uint state = h_at + row * hidden, kept_row = kept_at + row * 2 * hidden;
  const uint step = hidden * hidden, first = weight_at + i * hidden;
  vec4 sum = vec4(0.0);
  if (i < hidden) {
    if (kFours) {
      for (uint k = place * 4; k < hidden; k += ROW_LANES * 4) {
        const vec4 v = kStep == RECURRENT_NEW ? kept4[(kept_row + k) / 4] : h4[(state + k) / 4];
        [[unroll]] for (uint g = 0; g < 3; g++)
          if (has_product(g)) sum[g] += dot(v, vec4(weight4[(first + g * step + k) / 4]));
      }
    } else {
      for (uint k = place; k < hidden; k += ROW_LANES) {
        const float v = kStep == RECURRENT_NEW ? kept[kept_row + k] : h[state + k];
        [[unroll]] for (uint g = 0; g < 3; g++)
          if (has_product(g)) sum[g] += v * float(weight[first + g * step + k]);
      }
    }
  }
  sum = sum_of_row(sum);
  if (place != 0 || i >= hidden) return;
  float made;
  if (kStep == RECURRENT_PLAIN) {
    made = function_of(kActivation, gate(row, 0, i, 1) + sum.x, a[1], b[1]);
  } else {
    float reset, update, fresh = gate(row, 1, i, 3);
    if (kStep != RECURRENT_NEW) {
      reset = function_of(kRecurrent, gate(row, 0, i, 3) + bias_of(0, i) + sum.x, a[0], b[0]);
      update = function_of(kRecurrent, gate(row, 2, i, 3) + bias_of(2, i) + sum.z, a[0], b[0]);
    }
    if (kStep == RECURRENT_GATES) {
      kept[kept_row + i] = reset * h[state + i];
      kept[kept_row + hidden + i] = update;
      return;
    }
    if (kStep == RECURRENT_NEW) update = kept[kept_row + hidden + i];
    const float from_state = sum.y + bias_of(1, i);
    fresh = function_of(kActivation, fresh + (kStep == RECURRENT_GRU ? reset * from_state : from_state), a[1], b[1]);
    made = (1.0 - update) * fresh + update * h[state + i];
  }
  h_next[h_next_at + row * hidden + i] = made;
  if (kStored) y[y_at + row * hidden + i] = made;
}
