// SPDX-License-Identifier: Apache-2.0
// Weights in the form in which a model stores them: codes of 4 or 8 bits in words, the lowest bits first. Each row begins
// with a new word. An element is (code - offset) * scale or (table[code] - offset) * scale. A scale applies to
// scale_rows rows and scale_depth of their elements, a table to table_rows rows.
layout(constant_id = 0) const uint kBits = 8;
layout(constant_id = 1) const bool kSigned = false;
layout(constant_id = 2) const bool kTable = false;
layout(constant_id = 3) const bool kScale = false;
layout(constant_id = 4) const bool kOffset = false;
layout(constant_id = 5) const uint kThen = 0;
layout(constant_id = 6) const uint kLast = 0;
layout(push_constant) uniform P {
  uint a_at, w_at, parameters_at, bias_at, addend_at, c_at;
  float a1, b1, a2, b2;
  uint has;
  uint rows, columns, depth;
  uint words, scale_rows, scale_depth, scale_groups, offset_first, table_first, table_rows, table_entries;
};
#include "after.glsl"
const uint kCodes = 32 / kBits;  // of a word

float code_of(uint word, uint i) {
  return kSigned ? float(bitfieldExtract(int(word), int(i * kBits), int(kBits)))
                 : float(bitfieldExtract(word, int(i * kBits), int(kBits)));
}
uint table_of(uint row) { return parameters_at + table_first + row / table_rows * table_entries; }
uint scale_of(uint row, uint k) { return parameters_at + row / scale_rows * scale_groups + k / scale_depth; }
