// SPDX-License-Identifier: Apache-2.0
// Applies functions to a result, and tells whether it has a bias and an addend. The shader that includes this declares the
// specialization constants kThen and kLast. Its push constants contain the functions' parameters a1, b1, a2 and b2, and the
// flags `has` (numbers.inc).
bool has_bias() { return (has & HAS_BIAS) != 0; }
bool has_addend() { return (has & HAS_ADDEND) != 0; }

float applied(float v) {
  return (has & HAS_FUNCTIONS) == 0 ? v : function_of(kLast, function_of(kThen, v, a1, b1), a2, b2);
}
