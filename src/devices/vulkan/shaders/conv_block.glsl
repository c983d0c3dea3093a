#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// variants: f32 f16 f32_f16 f32_u8 f16_u8
// A convolution: a block is 8 channels of kPixels neighbors of a row.

layout(constant_id = 0) const int kDepth = 1;  // the kernel's sizes
layout(constant_id = 1) const int kHeight = 1;
layout(constant_id = 2) const int kWidth = 1;
layout(constant_id = 3) const bool kBias = false;
layout(constant_id = 4) const bool kAddend = false;
layout(constant_id = 5) const uint kThen = 0;
layout(constant_id = 6) const uint kLast = 0;
layout(constant_id = 7) const int kPixels = 8;
layout(constant_id = 8) const int kStride = 1;  // along rows, as is kDilation
layout(constant_id = 9) const int kDilation = 1;
layout(constant_id = 10) const bool kFours = false;  // a kernel of 1, rows of whole fours and 8 pixels
layout(local_size_x_id = 11) in;
#include "block.glsl"
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 0) readonly buffer X4 { TX4 x4[]; };
layout(binding = 1) readonly buffer W { T2X4 w[]; };  // [groups, channels, taps, made / 4] of four
layout(binding = 2) readonly buffer B { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
// For weights that are bytes: (byte - offset) * scale, [channels / 4] of four scales and four offsets.
layout(binding = 5) readonly buffer Q { vec4 scales[]; };
layout(push_constant) uniform P {
  uint x_at, w_at, bias_at, addend_at, y_at, scales_at;
  float a1, b1, a2, b2;
  uint channels, made, groups;  // channels of a group, in x and y
  int in_size[3], out_size[3], strides[3], dilations[3], pads[3];
};

#include "columns.glsl"

void main() {
  const int in_row = (out_size[2] + kPixels - 1) / kPixels, lines = out_size[0] * out_size[1];
  const uint rows4 = (made + 3) / 4, plane = gl_WorkGroupID.z, part = plane % groups;
  const uint i = block(), in_rows = uint(in_row * lines);
  const uint row4 = i / in_rows * 2, next4 = min(row4 + 1, rows4 - 1);
  if (row4 >= rows4) return;
  const int line = int(i % in_rows) / in_row, ow = int(i % in_rows) % in_row * kPixels;
  const int d0 = line / out_size[1] * strides[0] - pads[0], h0 = line % out_size[1] * strides[1] - pads[1];
  const int w0 = ow * kStride - pads[2];
  const uint taps = uint(kDepth * kHeight * kWidth), in_plane = uint(in_size[0] * in_size[1] * in_size[2]);
  const uint x_base = x_at + plane * channels * in_plane, w_base = w_at + part * channels * taps * rows4;

  find_columns(w0, in_size[2]);
#ifdef TO_u8
  const uint s4 = part * rows4;
  const vec4 scale[2] = {scales[2 * (s4 + row4)], scales[2 * (s4 + next4)]};
  const vec4 offset[2] = {scales[2 * (s4 + row4) + 1], scales[2 * (s4 + next4) + 1]};
#endif
  float sum[8 * kPixels];
  [[unroll]] for (int n = 0; n < 8 * kPixels; n++) sum[n] = 0.0;
  for (int a = 0; a < kDepth; a++) {
    const int d = d0 + a * dilations[0];
    for (int b = 0; b < kHeight; b++) {
      const int h = h0 + b * dilations[1];
      if (d < 0 || d >= in_size[0] || h < 0 || h >= in_size[1]) continue;
      uint from = x_base + uint((d * in_size[1] + h) * in_size[2]);
      uint by = w_base + uint((a * kHeight + b) * kWidth) * rows4;
      for (uint k = 0; k < channels; k++) {
        float v[kSpan];
        if (kFours) {
          const uint at = (from + uint(ow)) / 4;
          const vec4 first = vec4(x4[at]), second = vec4(x4[ow + 4 < out_size[2] ? at + 1 : at]);
          [[unroll]] for (int s = 0; s < 4; s++) {
            v[s] = first[s];
            v[s + 4] = second[s];
          }
        } else {
          read_columns(from, v);
        }
        [[unroll]] for (int e = 0; e < kWidth; e++) {
#ifdef TO_u8
          const vec4 weights[2] = {(vec4(uvec4(w[by + row4])) - offset[0]) * scale[0],
                                   (vec4(uvec4(w[by + next4])) - offset[1]) * scale[1]};
#else
          const vec4 weights[2] = {vec4(w[by + row4]), vec4(w[by + next4])};
#endif
          by += rows4;
          [[unroll]] for (int r = 0; r < 8; r++)
            [[unroll]] for (int n = 0; n < kPixels; n++)
              sum[r * kPixels + n] += weights[r / 4][r % 4] * v[n * kStride + e * kDilation];
        }
        from += in_plane;
        by += (taps - uint(kWidth)) * rows4;
      }
    }
  }

  // A driver takes long to compile this loop unrolled. The sums move up by a row instead, so that their indices stay
  // constant.
  [[dont_unroll]] for (uint r = 0; r < 8; r++) {
    const uint row = row4 * 4 + r;
    if (row >= made) break;
    const float b = kBias ? float(bias[bias_at + part * made + row]) : 0.0;
    const uint to = ((plane * made + row) * uint(lines) + uint(line)) * uint(out_size[2]) + uint(ow);
    [[unroll]] for (int n = 0; n < kPixels; n++) {
      if (ow + n >= out_size[2]) break;
      float v = sum[n] + b;
      if (kAddend) v += float(addend[addend_at + to + uint(n)]);
      y[y_at + to + uint(n)] = T(function_of(kLast, function_of(kThen, v, a1, b1), a2, b2));
    }
    [[unroll]] for (int n = 0; n < 7 * kPixels; n++) sum[n] = sum[n + kPixels];
  }
}
