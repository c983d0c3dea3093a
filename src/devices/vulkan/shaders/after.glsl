// What is applied to a result. What includes this declares the constants kThen and kLast, and among its push constants the
// parameters a1, b1, a2 and b2 of these functions and `has` (numbers.inc).
bool has_bias() { return (has & HAS_BIAS) != 0; }
bool has_addend() { return (has & HAS_ADDEND) != 0; }

float applied(float v) {
  return (has & HAS_FUNCTIONS) == 0 ? v : function_of(kLast, function_of(kThen, v, a1, b1), a2, b2);
}
