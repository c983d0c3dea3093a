#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// T2 is the type of keys and values. It differs from T if a state stores them in another type.

layout(binding = 0) readonly buffer Q { T query[]; };
layout(binding = 0) readonly buffer Q4 { TX4 query4[]; };
layout(binding = 1) readonly buffer K { T2 key[]; };
layout(binding = 1) readonly buffer K4 { T2X4 key4[]; };
layout(binding = 2) readonly buffer U { T2 value[]; };
layout(binding = 2) readonly buffer U4 { T2X4 value4[]; };
layout(binding = 3) readonly buffer M { T mask[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
#include "attention_block.glsl"
