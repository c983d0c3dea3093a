// SPDX-License-Identifier: Apache-2.0
// A workgroup of 256 invocations multiplies rows of a matrix by a vector. ROW_LANES neighboring invocations compute one
// row: a subgroup if LANES is defined, otherwise 32 of them. sum_of_row() adds their values.
#ifdef LANES
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#define ROW_LANES gl_SubgroupSize
uint invocation() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }
vec4 sum_of_row(vec4 mine) { return subgroupAdd(mine); }
#else
#define ROW_LANES 32u
uint invocation() { return gl_LocalInvocationID.x; }
shared vec4 row_part[256];

vec4 sum_of_row(vec4 mine) {
  const uint t = invocation(), in_row = t % ROW_LANES;
  row_part[t] = mine;
  barrier();
  for (uint n = ROW_LANES / 2; n > 0; n /= 2) {
    if (in_row < n) row_part[t] += row_part[t + n];
    barrier();
  }
  return row_part[t - in_row];
}
#endif
uint place_in_row() { return invocation() % ROW_LANES; }
uint row_of_group() { return gl_WorkGroupID.x * (256u / ROW_LANES) + invocation() / ROW_LANES; }
