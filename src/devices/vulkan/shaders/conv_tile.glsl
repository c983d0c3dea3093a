#include "after.glsl"
#include "tile.glsl"
// The product of weights, vec4 [groups, depth, channels / 4], and the windows of x. The columns of the windows are made
// while they are read. `plane` counts images and groups, `part` the groups of the weights. The including shader
// declares kDepth, kHeight and kWidth, the size of a window, and these functions: bool has_tap(ivec3 tap) whether the
// window has this element uint stored_at(int p) the index in a plane of y where pixel p of the product is stored
void convolve(uint plane, uint part, ivec3 stride, ivec3 dilation, ivec3 pad, ivec3 size, ivec3 y_size) {
  const uint t = gl_LocalInvocationID.x;
  const ivec3 in_sizes = ivec3(in_size[0], in_size[1], in_size[2]);
  const uint in_plane = uint(in_sizes.x * in_sizes.y * in_sizes.z);
  const int pixels = size.x * size.y * size.z;
  const uint first_row = gl_WorkGroupID.y * kTile, first_pixel = gl_WorkGroupID.x * kTile;
  const uint taps = kDepth * kHeight * kWidth, depth = channels * taps;
  const uint rows4 = (made + 3) / 4;
  const uint x_base = x_at + plane * channels * in_plane;

  // This invocation's part of the tiles.
  const uint w_row = first_row / 4 + t % kQuads;
  const uint w_base = w_at + part * depth * rows4 + w_row;
#ifdef TO_u8
  const uint w_scale = min(w_row, rows4 - 1) + part * rows4;
  const vec4 scale = scales[2 * w_scale], offset = scales[2 * w_scale + 1];
#endif
  const int p = int(first_pixel + t % kTile);
  ivec3 corner;
  if (!kPlain) corner = ivec3(p / size.z / size.y, p / size.z % size.y, p % size.z) * stride - pad;

  mat4 sum = mat4(0.0);
  const uint row_group = t / kQuads, column_group = t % kQuads;
  for (uint k0 = 0; k0 < depth; k0 += TILE_DEPTH) {
    [[unroll]] for (uint i = 0; i < TILE_DEPTH; i += kInvocations / kQuads) {
      const uint in_tile = t / kQuads + i, k = k0 + in_tile;
      vec4 weights = vec4(0.0);
      if (k < depth && w_row < rows4) {
#ifdef TO_u8
        weights = (vec4(uvec4(w[w_base + k * rows4])) - offset) * scale;
#else
        weights = vec4(w[w_base + k * rows4]);
#endif
      }
      tile_a[in_tile * kQuads + t % kQuads] = TILE4(weights);
    }
    [[unroll]] for (uint i = 0; i < TILE_DEPTH; i += kInvocations / kTile) {
      const uint in_tile = t / kTile + i, k = k0 + in_tile;
      float v = 0.0;
      if (k < depth && p < pixels) {
        if (kPlain) {
          v = float(x[x_base + k * in_plane + p]);
        } else {
          const uint n = k % taps;
          const ivec3 tap = ivec3(n / (kHeight * kWidth), n / kWidth % kHeight, n % kWidth);
          const ivec3 at = corner + tap * dilation;
          if (all(greaterThanEqual(at, ivec3(0))) && all(lessThan(at, in_sizes)) && has_tap(tap))
            v = float(x[x_base + k / taps * in_plane + uint((at.x * in_sizes.y + at.y) * in_sizes.z + at.z)]);
        }
      }
      tile_b[in_tile * kQuads + t % kTile / 4][t % 4] = TILE1(v);
    }
    barrier();
    add_tiles(sum, row_group, column_group);
    barrier();
  }

  const uint out_plane = uint(y_size.x * y_size.y * y_size.z);
  [[unroll]] for (uint i = 0; i < 4; i++) {
    const uint row = first_row + row_group * 4 + i;
    if (row >= made) break;
    const float b = has_bias() ? float(bias[bias_at + plane % groups * made + row]) : 0.0;
    [[unroll]] for (uint j = 0; j < 4; j++) {
      const int q = int(first_pixel + column_group * 4 + j);
      if (q >= pixels) break;
      const uint to = (plane * made + row) * out_plane + stored_at(q);
      float v = sum[i][j] + b;
      if (has_addend()) v += float(addend[addend_at + to]);
      y[y_at + to] = T(applied(v));
    }
  }
}
