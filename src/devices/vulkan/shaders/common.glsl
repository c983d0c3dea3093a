// SPDX-License-Identifier: Apache-2.0
// T is the element type of buffers, V the type in which the shader computes.
#extension GL_EXT_shader_16bit_storage : enable
#extension GL_EXT_shader_8bit_storage : enable
#extension GL_EXT_control_flow_attributes : enable
#include "numbers.inc"

// The element type of tiles in shared memory. If both factors of a product are float16 and the driver can compute with
// it, tiles stay float16 and take half the memory. float32 holds these products exactly and adds them.
#ifdef HALF_TILES
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define TILE1 float16_t
#define TILE4 f16vec4
#else
#define TILE1 float
#define TILE4 vec4
#endif

#define NAN uintBitsToFloat(0x7fc00000u)
#define INF uintBitsToFloat(0x7f800000u)

// One element for each invocation, in groups of 256 that fill x before y (CommandRecorder::lines).
uint index() {
  return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 256u + gl_LocalInvocationID.x;
}
