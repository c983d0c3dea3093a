#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// T2 is the type of keys and values, which a state may keep in another one.

layout(binding = 0) readonly buffer Q { T query[]; };
layout(binding = 1) readonly buffer K { T2 key[]; };
layout(binding = 2) readonly buffer U { T2 value[]; };
layout(binding = 3) readonly buffer M { T mask[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
#include "attention.glsl"
