#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// T2 is the mask's type.

layout(binding = 0) readonly buffer Q { T query[]; };
layout(binding = 0) readonly buffer Q4 { TX4 query4[]; };
layout(binding = 1) readonly buffer K { T key[]; };
layout(binding = 1) readonly buffer K4 { TX4 key4[]; };
layout(binding = 2) readonly buffer U { T value[]; };
layout(binding = 2) readonly buffer U4 { TX4 value4[]; };
layout(binding = 3) readonly buffer M { T2 mask[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
#ifdef TO_BOOL
#define HAS_BOOL_MASK
#endif
#include "attention_block.glsl"
