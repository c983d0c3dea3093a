#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"
// variants: f32 f16
// Winograd's transform F(2x2, 3x3) back: 16 numbers become 2 x 2 elements. tiles: [16, made, batch * tiles of an image].

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool kBias = false;
layout(constant_id = 1) const bool kAddend = false;
layout(constant_id = 2) const uint kThen = 0;
layout(constant_id = 3) const uint kLast = 0;
layout(binding = 0) readonly buffer M { float tiles[]; };
layout(binding = 1) readonly buffer B { T bias[]; };
layout(binding = 2) readonly buffer R { T addend[]; };
layout(binding = 3) writeonly buffer Y { T y[]; };
layout(push_constant) uniform P {
  uint tiles_at, bias_at, addend_at, y_at;
  float a1, b1, a2, b2;
  uint count, made, columns, in_image, across;
  int out_size[2];
};

vec2 transformed(vec4 v) { return vec2(v.x + v.y + v.z, v.y - v.z - v.w); }

void main() {
  const uint i = index();
  if (i >= count) return;
  const uint column = i % columns, row = i / columns;
  const uint image = column / in_image, tile = column % in_image;
  vec4 rows[4];
  uint from = tiles_at + row * columns + column;
  [[unroll]] for (int r = 0; r < 4; r++) {
    [[unroll]] for (int c = 0; c < 4; c++) {
      rows[r][c] = tiles[from];
      from += made * columns;
    }
  }
  const vec4 down[2] = {rows[0] + rows[1] + rows[2], rows[1] - rows[2] - rows[3]};
  const int h0 = int(tile / across) * 2, w0 = int(tile % across) * 2;
  const float b = kBias ? float(bias[bias_at + row]) : 0.0;
  [[unroll]] for (int r = 0; r < 2; r++) {
    const vec2 v = transformed(down[r]);
    [[unroll]] for (int c = 0; c < 2; c++) {
      if (h0 + r >= out_size[0] || w0 + c >= out_size[1]) continue;
      const uint to = (image * made + row) * uint(out_size[0] * out_size[1]) + uint((h0 + r) * out_size[1] + w0 + c);
      float e = v[c] + b;
      if (kAddend) e += float(addend[addend_at + to]);
      y[y_at + to] = T(function_of(kLast, function_of(kThen, e, a1, b1), a2, b2));
    }
  }
}
