// SPDX-License-Identifier: Apache-2.0
#include "after.glsl"
#include "norms.glsl"
const bool kLeftLine = false, kRightLine = false;
#include "tile.glsl"
// The product of weights, vec4 [groups, depth, channels / 4], and the windows of x. The columns of the windows are made
// while they are read. `plane` counts images and groups, `part` the groups of the weights. The including shader
// declares kDepth, kHeight and kWidth, the size of a window, and these functions:
//   bool has_tap(ivec3 tap)   whether the window has this element
//   uint stored_at(int p)     the index in a plane of y at which pixel p of the product is stored
const uint kTaps = kDepth * kHeight * kWidth;
// An invocation reads the same quad of each row of a tile.
uint rows4, row4, weights_base, x_base, in_plane, depth;
int first_pixel, pixels;
ivec3 in_sizes, spread, corner[4];  // spread: the dilations
#ifdef TO_u8
vec4 scale, offset;
#endif

vec4 left(uint k, uint quad) {
  if (k >= depth || row4 >= rows4) return vec4(0.0);
#ifdef TO_u8
  return (vec4(uvec4(w[weights_base + k * rows4 + row4])) - offset) * scale;
#else
  return vec4(w[weights_base + k * rows4 + row4]);
#endif
}

vec4 right(uint k, uint quad) {
  vec4 v = vec4(0.0);
  if (k >= depth) return v;
  if (kPlain) {
    const uint from = x_base + k * in_plane;
    [[unroll]] for (uint i = 0; i < 4; i++) {
      const int p = first_pixel + int(quad + i * kQuads);
      if (p < pixels) v[i] = float(x[from + p]);
    }
    return v;
  }
  const uint n = k % kTaps, from = x_base + k / kTaps * in_plane;
  const ivec3 tap = ivec3(n / (kHeight * kWidth), n / kWidth % kHeight, n % kWidth);
  if (!has_tap(tap)) return v;
  [[unroll]] for (uint i = 0; i < 4; i++) {
    const ivec3 at = corner[i] + tap * spread;
    if (first_pixel + int(quad + i * kQuads) < pixels && all(greaterThanEqual(at, ivec3(0))) && all(lessThan(at, in_sizes)))
      v[i] = float(x[from + uint((at.x * in_sizes.y + at.y) * in_sizes.z + at.z)]);
  }
  return v;
}

void convolve(uint plane, uint part, ivec3 stride, ivec3 dilation, ivec3 pad, ivec3 size, ivec3 y_size) {
  const uint first_row = gl_WorkGroupID.y * kTile, quad = column_group();
  in_sizes = ivec3(in_size[0], in_size[1], in_size[2]);
  in_plane = uint(in_sizes.x * in_sizes.y * in_sizes.z);
  spread = dilation;
  pixels = size.x * size.y * size.z;
  first_pixel = int(gl_WorkGroupID.x * kTile);
  depth = channels * kTaps;
  rows4 = (made + 3) / 4;
  row4 = first_row / 4 + quad;
  weights_base = w_at + part * depth * rows4;
  x_base = x_at + plane * channels * in_plane;
#ifdef TO_u8
  const uint w_scale = min(row4, rows4 - 1) + part * rows4;
  scale = scales[2 * w_scale];
  offset = scales[2 * w_scale + 1];
#endif
  if (!kPlain)
    [[unroll]] for (uint i = 0; i < 4; i++) {
      const int p = first_pixel + int(quad + i * kQuads);
      corner[i] = ivec3(p / size.z / size.y, p / size.z % size.y, p % size.z) * stride - pad;
    }
  const mat4 sum = multiplied(depth);
  if (!has_sums()) return;

  const uint out_plane = uint(y_size.x * y_size.y * y_size.z), planes = gl_NumWorkGroups.z / kParts;
  [[unroll]] for (uint i = 0; i < 4; i++) {
    const uint row = first_row + row_group() * 4 + i;
    if (row >= made) break;
    const uint channel = plane % groups * made + row;
    const float b = has_bias() ? float(bias[bias_at + channel]) : 0.0;
    const vec2 norm = norm_of(channel);
    [[unroll]] for (uint j = 0; j < 4; j++) {
      const int q = first_pixel + int(column_group() + j * kQuads);
      if (q >= pixels) break;
      const uint to = (plane * made + row) * out_plane + stored_at(q);
      if (kParts > 1) {
        partial[y_at + part_number() * planes * made * out_plane + to] = sum[i][j];
        continue;
      }
      float v = sum[i][j] + b;
      if (has_addend()) v += float(addend[addend_at + to]);
      y[y_at + to] = T(normed(applied(v), norm));
    }
  }
}
