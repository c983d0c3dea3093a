#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
#include "slopes.glsl"
// Steps of a GRU backwards, but for their products. Gates are in the order reset, new, update: `gates` holds their values
// and then their gradients, `products` those of the products with the state. An invocation computes a unit of a row.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kStage = GRU_WHOLE;
layout(constant_id = 1) const uint kRecurrent = 0;
layout(constant_id = 2) const uint kActivation = 0;
layout(constant_id = 3) const bool kAfter = false;   // reset after the product
layout(constant_id = 4) const bool kStates = false;  // states are not known
layout(constant_id = 5) const bool kEach = false;    // each state has a gradient
layout(binding = 0) readonly buffer X { float x_gates[]; };
layout(binding = 1) buffer G { float gates[]; };
layout(binding = 2) buffer Z { float products[]; };
layout(binding = 3) buffer S { float states[]; };  // before each step
layout(binding = 4) buffer K { float kept[]; };    // what the weights of the new value multiply, then its gradient
layout(binding = 5) readonly buffer H { float dh[]; };
layout(binding = 6) buffer R { float carry[]; };  // the gradient of the old state, without the products
layout(binding = 7) readonly buffer Y { float dy[]; };
layout(push_constant) uniform P {
  uint x_at, gates_at, products_at, states_at, kept_at, dh_at, carry_at, dy_at;
  uint hidden, batch, steps, first, rows;
  float a[2], b[2];
};

float gate_of(uint gate, uint at) {
  return function_of(kRecurrent, x_gates[x_at + at + gate * hidden] + products[products_at + at + gate * hidden], a[0],
                     b[0]);
}

void main() {
  const uint e = index();
  if (e >= rows * hidden) return;
  const uint row = first + e / hidden, unit = e % hidden, state = row * hidden + unit, at = row * 3 * hidden + unit;
  const uint reset = gates_at + at, fresh = reset + hidden, update = fresh + hidden, z = products_at + at;
  const float h = states[states_at + state];
  if (kStage == GRU_WHOLE || kStage == GRU_GATES) {
    gates[reset] = gate_of(0, at);
    gates[update] = gate_of(2, at);
    kept[kept_at + state] = kAfter ? h : gates[reset] * h;
  }
  if (kStage == GRU_WHOLE || kStage == GRU_NEW) {
    const float from_state = products[z + hidden];
    const float made = function_of(
        kActivation, x_gates[x_at + at + hidden] + (kAfter ? gates[reset] * from_state : from_state), a[1], b[1]);
    gates[fresh] = made;
    if (kStates && row + batch < steps * batch)
      states[states_at + state + batch * hidden] = (1.0 - gates[update]) * made + gates[update] * h;
  }
  if (kStage == GRU_BACKWARD) {
    float d = dh[dh_at + e];
    if (kEach) d += dy[dy_at + state];
    const float r = gates[reset], made = gates[fresh], u = gates[update];
    const float d_fresh = d * (1.0 - u) * slope_of(kActivation, made, a[1], b[1]);
    const float d_update = d * (h - made) * slope_of(kRecurrent, u, a[0], b[0]);
    carry[carry_at + e] = d * u;
    gates[fresh] = d_fresh;
    gates[update] = products[z + 2 * hidden] = d_update;
    if (kAfter)
      gates[reset] = products[z] = d_fresh * products[z + hidden] * slope_of(kRecurrent, r, a[0], b[0]);
    products[z + hidden] = kAfter ? d_fresh * r : d_fresh;
  }
  if (kStage == GRU_RESET) {
    const float r = gates[reset], d = kept[kept_at + e];
    carry[carry_at + e] += d * r;
    gates[reset] = products[z] = d * h * slope_of(kRecurrent, r, a[0], b[0]);
  }
}
