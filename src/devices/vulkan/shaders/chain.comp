#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// variants: f32 f16 f32_f16 f16_f32
#include "chain.glsl"
