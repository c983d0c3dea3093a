// SPDX-License-Identifier: Apache-2.0
// c[m, n] = sum over k of a[m, k] * b[k, n] for each entry of a batch of up to three dimensions, the innermost first.
layout(constant_id = 0) const bool kALine = false;  // whether k is the innermost dimension of a, of b
layout(constant_id = 1) const bool kBLine = false;
layout(constant_id = 2) const uint kThen = 0;
layout(constant_id = 3) const uint kLast = 0;
layout(push_constant) uniform P {
  uint a_at, b_at, bias_at, addend_at, c_at;
  float a1, b1, a2, b2;
  uint has;
  uint rows, columns, depth;
  uint a_row, a_k, b_k, b_column, c_row, c_column, bias_column;
  uint size[2], a_batch[3], b_batch[3], c_batch[3];
};
#include "after.glsl"

uvec3 batch_entry(uint i) { return uvec3(i % size[0], i / size[0] % size[1], i / size[0] / size[1]); }
uint position(uvec3 entry, uint step[3]) { return entry.x * step[0] + entry.y * step[1] + entry.z * step[2]; }
