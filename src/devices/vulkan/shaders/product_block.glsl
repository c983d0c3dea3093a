// SPDX-License-Identifier: Apache-2.0
// A product in blocks of 8 rows by 8 columns. The including shader declares the buffers and the constants.
#include "block.glsl"

uvec2 first_row_and_column() {
  const uint i = block(), row_blocks = (rows + 7) / 8;
  return uvec2(i % row_blocks, i / row_blocks) * 8;
}

// Element (i, j) of the result is c[to + i * row_step + j * column_step].
void store_block(uint row, uint column, uint to, uint row_step, uint column_step, uint bias_step, float sum[64]) {
  // Drivers compile unrolled loops slowly, so these are not. The sums move up by one, which keeps their indices constant.
  [[dont_unroll]] for (uint r = row; r < min(row + 8, rows); r++) {
    float line[8];
    [[unroll]] for (uint n = 0; n < 8; n++) line[n] = sum[n];
    uint at = to + r * row_step + column * column_step;
    [[dont_unroll]] for (uint n = column; n < min(column + 8, columns); n++) {
      float v = line[0];
      if (has_bias()) v += float(bias[bias_at + n * bias_step]);
      if (has_addend()) v += float(addend[addend_at - c_at + at]);
      c[at] = T(applied(v));
      at += column_step;
      [[unroll]] for (uint m = 0; m < 7; m++) line[m] = line[m + 1];
    }
    [[unroll]] for (uint n = 0; n < 56; n++) sum[n] = sum[n + 8];
  }
}
