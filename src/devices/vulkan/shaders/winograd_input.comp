#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// variants: f32 f16
// Winograd's transform F(2x2, 3x3) of the input: 4 x 4 elements of a channel, 2 apart, become 16 numbers, each for a
// product of its own. tiles: [16, channels, batch * tiles of an image].

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) writeonly buffer Tiles { float tiles[]; };
layout(push_constant) uniform P {
  uint x_at, tiles_at;
  uint count, channels, columns, in_image, across;  // columns: batch * in_image; across: tiles in a row
  int in_size[2], pads[2];
};

vec4 transformed(vec4 d) { return vec4(d.x - d.z, d.y + d.z, d.z - d.y, d.y - d.w); }

void main() {
  const uint i = index();
  if (i >= count) return;
  const uint column = i % columns, channel = i / columns;
  const uint image = column / in_image, tile = column % in_image;
  const int h0 = int(tile / across) * 2 - pads[0], w0 = int(tile % across) * 2 - pads[1];
  const uint plane = x_at + (image * channels + channel) * uint(in_size[0] * in_size[1]);
  vec4 rows[4];
  [[unroll]] for (int r = 0; r < 4; r++) {
    const int h = h0 + r;
    [[unroll]] for (int c = 0; c < 4; c++) {
      const int w = w0 + c;
      const bool inside = h >= 0 && h < in_size[0] && w >= 0 && w < in_size[1];
      rows[r][c] = inside ? float(x[plane + uint(h * in_size[1] + w)]) : 0.0;
    }
  }
  const vec4 down[4] = {rows[0] - rows[2], rows[1] + rows[2], rows[2] - rows[1], rows[1] - rows[3]};
  uint to = tiles_at + channel * columns + column;
  [[unroll]] for (int r = 0; r < 4; r++) {
    const vec4 v = transformed(down[r]);
    [[unroll]] for (int c = 0; c < 4; c++) {
      tiles[to] = v[c];
      to += channels * columns;
    }
  }
}
