#version 450
#extension GL_GOOGLE_include_directive : require
#define LANES
#include "common.glsl"
#include "functions.glsl"
// variants: f32 f32_f16
#include "recurrent.glsl"
