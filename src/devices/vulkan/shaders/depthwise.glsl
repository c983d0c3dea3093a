// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution, and a 1 x 1 convolution that reads its result.
layout(push_constant) uniform P {
  uint x_at, w_at, bias_at, addend_at, y_at, inner_at, inner_bias_at, norms_at;
  float a1, b1, a2, b2, c1, d1, c2, d2;
  uint channels, made;
  int in_size[2], out_size[2], strides[2], dilations[2], pads[2];
  uint has;
  // For blocks: runs of pixels in a workgroup, channels of x that an invocation convolves at a time, and the height of
  // the kernel.
  uint segments, times;
  int height;
};
#include "after.glsl"
#include "norms.glsl"

// `v` as a separate depthwise convolution would store it.
float stored(float v) {
#ifdef FROM_HALF
  return unpackHalf2x16(packHalf2x16(vec2(v, 0.0))).x;
#else
  return v;
#endif
}
