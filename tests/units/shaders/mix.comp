#version 450
// SPDX-License-Identifier: Apache-2.0
// y = scale * a + b + table[i % kTable], z = b + 1: two inputs, two outputs, a buffer, a constant and a parameter.
layout(local_size_x = 32) in;
layout(constant_id = 0) const uint kTable = 1;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { int b[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };
layout(binding = 3) writeonly buffer Z { int z[]; };
layout(binding = 4) readonly buffer T { float table[]; };
layout(push_constant) uniform P { float scale; uint count; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= count) return;
  y[i] = scale * a[i] + float(b[i]) + table[i % kTable];
  z[i] = b[i] + 1;
}
