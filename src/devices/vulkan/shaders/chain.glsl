// SPDX-License-Identifier: Apache-2.0
// A program of elementwise functions (chain.h). Values 0 to 5 are the inputs, the others are results of instructions.
// SHORT: at most 4 instructions, because drivers compile all functions again for each possible instruction.

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kRank = 1;
layout(constant_id = 1) const uint kInputs = 1;
layout(constant_id = 2) const uint kNodes = 0;
#define NODE(n)                                                \
  layout(constant_id = 3 + 3 * n) const uint kWhat##n = 0;     \
  layout(constant_id = 4 + 3 * n) const float kFirst##n = 0.0; \
  layout(constant_id = 5 + 3 * n) const float kSecond##n = 0.0;
NODE(0)
NODE(1)
NODE(2)
NODE(3)
#ifndef SHORT
NODE(4)
NODE(5)
NODE(6)
NODE(7)
NODE(8)
NODE(9)
NODE(10)
NODE(11)
#endif
layout(binding = 0) readonly buffer A { T a[]; };
layout(binding = 1) readonly buffer B { T b[]; };
layout(binding = 2) readonly buffer C { T c[]; };
layout(binding = 3) readonly buffer D { T d[]; };
layout(binding = 4) readonly buffer E { T e[]; };
layout(binding = 5) readonly buffer F { T f[]; };
layout(binding = 6) writeonly buffer Y { T2 y[]; };
layout(push_constant) uniform P {
  uint at[6], y_at, count;
  uint size[3], step[6][3];  // the innermost dimension first
};

const uint kNumber = 18;
float value[18];

float operand(uint n, float number) { return n == kNumber ? number : value[n]; }

float result(uint what, float first, float second) {
  const uint code = what & 255u;
  const float p = operand(what >> 8 & 255u, first);
  if (code < 64u) return function_of(code, p, first, second);
  return binary_of(code - 64u, p, operand(what >> 16, first));
}

#define RUN(n) \
  if (kNodes > n) value[6 + n] = result(kWhat##n, kFirst##n, kSecond##n);

void main() {
  const uint i = index();
  if (i >= count) return;
  uint rest = i, from[6] = at;
  [[unroll]] for (uint n = 0; n + 1 < kRank; n++) {
    const uint k = rest % size[n];
    rest /= size[n];
    [[unroll]] for (uint m = 0; m < kInputs; m++) from[m] += k * step[m][n];
  }
  [[unroll]] for (uint m = 0; m < kInputs; m++) from[m] += rest * step[m][kRank - 1];
  value[0] = float(a[from[0]]);
  if (kInputs > 1) value[1] = float(b[from[1]]);
  if (kInputs > 2) value[2] = float(c[from[2]]);
  if (kInputs > 3) value[3] = float(d[from[3]]);
  if (kInputs > 4) value[4] = float(e[from[4]]);
  if (kInputs > 5) value[5] = float(f[from[5]]);
  RUN(0)
  RUN(1)
  RUN(2)
  RUN(3)
#ifndef SHORT
  RUN(4)
  RUN(5)
  RUN(6)
  RUN(7)
  RUN(8)
  RUN(9)
  RUN(10)
  RUN(11)
#endif
  y[y_at + i] = T2(kNodes > 0 ? value[5 + kNodes] : value[0]);
}
