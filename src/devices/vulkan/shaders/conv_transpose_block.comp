#version 450
#extension GL_GOOGLE_include_directive : require
#define TRANSPOSED
#include "common.glsl"
#include "functions.glsl"
// variants: f32 f16 f32_f16
#include "conv_block.glsl"
