// SPDX-License-Identifier: Apache-2.0
// Declarations that attention by tiles and attention by blocks share.
layout(push_constant) uniform P {
  uint query_at, key_at, value_at, mask_at, y_at;
  uint rows, keys;
  float scale, hidden;
  uint query_row, query_column, key_row, key_column, value_row, value_column, mask_row, mask_column, y_row;
  uint inner;  // heads along the inner one of two dimensions
  uint steps[5][2];
};

uint head(uint tensor) {
  return gl_WorkGroupID.z % inner * steps[tensor][0] + gl_WorkGroupID.z / inner * steps[tensor][1];
}

float greater_of(float a, float b) { return b > a || isnan(b) ? b : a; }
float exp_of(float x) { return x < -100.0 ? 0.0 : exp(x); }
