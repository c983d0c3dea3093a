// SPDX-License-Identifier: Apache-2.0
#include "packed.glsl"
#include "rows.glsl"
// The product of a few rows and the transpose of packed weights. A workgroup computes columns of one row.

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer A { T a[]; };
layout(binding = 1) readonly buffer W { uint w[]; };
layout(binding = 2) readonly buffer Q { float parameters[]; };
layout(binding = 3) readonly buffer S { T bias[]; };
layout(binding = 4) readonly buffer R { T addend[]; };
layout(binding = 5) writeonly buffer C { T c[]; };

void main() {
  const uint place = place_in_row(), column = row_of_group(), row = gl_WorkGroupID.y;
  float sum = 0.0;
  if (column < columns) {
    const uint first = a_at + row * depth, table = kTable ? table_of(column) : 0;
    for (uint n = place; n < words; n += ROW_LANES) {
      const uint word = w[w_at + column * words + n];
      const uint k = n * kCodes;
      // All elements of a word have the same scale.
      const uint s = scale_of(column, min(k, depth - 1));
      const float offset = kOffset ? parameters[offset_first + s] : 0.0;
      float part = 0.0;
      [[unroll]] for (uint i = 0; i < kCodes; i++) {
        float v = code_of(word, i);
        if (kTable) v = parameters[table + uint(v)];
        if (k + i < depth) part += (v - offset) * float(a[first + k + i]);
      }
      sum += kScale ? part * parameters[s] : part;
    }
  }
  sum = sum_of_row(vec4(sum)).x;
  if (place != 0 || column >= columns) return;
  const uint to = row * columns + column;
  if (has_bias()) sum += float(bias[bias_at + column]);
  if (has_addend()) sum += float(addend[addend_at + to]);
  c[c_at + to] = T(applied(sum));
}
