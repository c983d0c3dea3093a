// SPDX-License-Identifier: Apache-2.0
// A convolution, or with TRANSPOSED a transposed one: a block is 8 channels of kPixels neighbors of a row. Weights are
// [groups, made / 8, channels, taps] of eight, for each phase of a transposed one.

layout(constant_id = 0) const int kWidth = 1;  // the kernel's taps along rows, or those of each of `rounds`
layout(constant_id = 1) const uint kThen = 0;
layout(constant_id = 2) const uint kLast = 0;
layout(constant_id = 3) const int kPixels = 8;
layout(constant_id = 4) const int kStride = 1;  // along rows, as is kDilation
layout(constant_id = 5) const int kDilation = 1;
layout(constant_id = 6) const bool kFours = false;  // a kernel of 1, rows of whole fours and 8 pixels
layout(local_size_x_id = 7) in;
#include "block.glsl"
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 0) readonly buffer X4 { TX4 x4[]; };
layout(binding = 1) readonly buffer W { T2X4 w[]; };
layout(binding = 2) readonly buffer B { T bias[]; };
layout(binding = 3) readonly buffer R { T addend[]; };
layout(binding = 4) writeonly buffer Y { T y[]; };
// For weights that are bytes: (byte - offset) * scale, [channels / 4] of four scales and four offsets.
layout(binding = 5) readonly buffer Q { vec4 scales[]; };
layout(binding = 5) readonly buffer N { vec2 norms[]; };  // for other weights
#define norms_at scales_at
layout(push_constant) uniform P {
  uint x_at, w_at, bias_at, addend_at, y_at, scales_at;
  float a1, b1, a2, b2;
  uint channels, made, groups;  // channels of a group, in x and y
  int in_size[3], out_size[3], strides[3], dilations[2];
  int rounds;  // loops over taps along rows, more than 1 where neighbors share no columns
  int pads[3];
  uint has, images;
  int depth, height;  // the kernel's other sizes
};

#include "after.glsl"
#include "norms.glsl"
#include "columns.glsl"

void main() {
  const uint eights = (made + 7) / 8;
#ifdef TRANSPOSED
  // Elements of the result with the same remainders by the strides (a phase) use the same taps: each phase is a
  // convolution without strides, of kernels that the weights hold reversed.
  const ivec3 step = ivec3(strides[0], strides[1], strides[2]);
  const int number = int(gl_WorkGroupID.z / groups);
  const uint part = gl_WorkGroupID.z - uint(number) * groups;
  const ivec3 phase = ivec3(number / (step.y * step.z), number / step.z % step.y, number % step.z);
  const ivec3 size = (ivec3(out_size[0], out_size[1], out_size[2]) - phase + step - 1) / step;
  const ivec3 pad = ivec3(depth, height, kWidth) - 1 - (phase + ivec3(pads[0], pads[1], pads[2])) / step;
  const ivec3 in_step = ivec3(1), tap_step = ivec3(1);
#else
  const ivec3 size = ivec3(out_size[0], out_size[1], out_size[2]), pad = ivec3(pads[0], pads[1], pads[2]);
  const ivec3 in_step = ivec3(strides[0], strides[1], kStride);
  const ivec3 tap_step = ivec3(dilations[0], dilations[1], kDilation), step = ivec3(1), phase = ivec3(0);
  const uint part = gl_WorkGroupID.z;
#endif
  const uint in_row = uint(size.z + kPixels - 1) / uint(kPixels), in_image = in_row * uint(size.x * size.y);
  const uint count = images * in_image, i = block();
  if (i >= count * eights) return;
  const uint eight = i / count, first_row = eight * 8, of_images = i - eight * count;
  const uint image = of_images / in_image, of_image = of_images - image * in_image, line = of_image / in_row;
  const int ow = int(of_image - line * in_row) * kPixels, slice = int(line) / size.y;
  const ivec3 at_block = ivec3(slice, int(line) - slice * size.y, ow), first = at_block * in_step - pad;
  const uint plane = image * groups + part;
  const uint taps = uint(depth * height * rounds * kWidth), in_plane = uint(in_size[0] * in_size[1] * in_size[2]);
  const uint x_base = x_at + plane * channels * in_plane, of_eight = gl_WorkGroupID.z * eights + eight;

#ifdef TO_u8
  const uint s4 = scales_at + of_eight * 4;
  const vec4 scale[2] = {scales[s4], scales[s4 + 2]}, offset[2] = {scales[s4 + 1], scales[s4 + 3]};
#endif
  const uint all_channels = channels;
  const ivec3 in_sizes = ivec3(in_size[0], in_size[1], in_size[2]);
  float sum[8 * kPixels];
  [[unroll]] for (int n = 0; n < 8 * kPixels; n++) sum[n] = 0.0;
  for (int round = 0; round < rounds; round++) {
    find_columns(first.z + round * kWidth * kDilation, in_sizes.z);
    for (int tall = 0; tall < depth * height; tall++) {
      const int a = tall / height, b = tall - a * height;
      const int d = first.x + a * tap_step.x, h = first.y + b * tap_step.y;
      if (d < 0 || d >= in_sizes.x || h < 0 || h >= in_sizes.y) continue;
      uint from = x_base + uint((d * in_sizes.y + h) * in_sizes.z);
      uint by = w_at + (of_eight * all_channels * taps + uint((tall * rounds + round) * kWidth)) * 2;
      for (uint k = 0; k < all_channels; k++) {
        float v[kSpan];
        if (kFours) {
          const uint at = (from + uint(ow)) / 4;
          const vec4 near = vec4(x4[at]), far = vec4(x4[ow + 4 < size.z ? at + 1 : at]);
          [[unroll]] for (int s = 0; s < 4; s++) {
            v[s] = near[s];
            v[s + 4] = far[s];
          }
        } else {
          read_columns(from, v);
        }
        [[unroll]] for (int e = 0; e < kWidth; e++) {
          const uint at = by + uint(e) * 2;
#ifdef TO_u8
          const vec4 weights[2] = {(vec4(uvec4(w[at])) - offset[0]) * scale[0],
                                   (vec4(uvec4(w[at + 1])) - offset[1]) * scale[1]};
#else
          const vec4 weights[2] = {vec4(w[at]), vec4(w[at + 1])};
#endif
          [[unroll]] for (int r = 0; r < 8; r++)
            [[unroll]] for (int n = 0; n < kPixels; n++)
              sum[r * kPixels + n] += weights[r / 4][r % 4] * v[n * kStride + e * kDilation];
        }
        from += in_plane;
        by += taps * 2;
      }
    }
  }

  // Drivers compile unrolled loops slowly, so these are not. The sums move up by one, which keeps their indices constant.
  const ivec3 to = at_block * step + phase;
  const uint out_plane = uint(out_size[0] * out_size[1] * out_size[2]);
  [[dont_unroll]] for (uint row = first_row; row < min(first_row + 8, made); row++) {
    const float b = has_bias() ? float(bias[bias_at + part * made + row]) : 0.0;
    const vec2 norm = norm_of(part * made + row);
    uint at = (plane * made + row) * out_plane + uint((to.x * out_size[1] + to.y) * out_size[2] + to.z);
    float results[kPixels];
    [[unroll]] for (int n = 0; n < kPixels; n++) results[n] = sum[n] + b;
    [[dont_unroll]] for (int n = ow; n < min(ow + kPixels, size.z); n++) {
      float v = results[0];
      if (has_addend()) v += float(addend[addend_at + at]);
      y[y_at + at] = T(normed(applied(v), norm));
      at += uint(step.z);
      [[unroll]] for (int m = 0; m < kPixels - 1; m++) results[m] = results[m + 1];
    }
    [[unroll]] for (int n = 0; n < 7 * kPixels; n++) sum[n] = sum[n + kPixels];
  }
}
