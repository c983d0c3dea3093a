#version 450
// SPDX-License-Identifier: Apache-2.0
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// The gradient of a convolution's weights. 2^lane_bits neighboring invocations share the sum of a weight.

layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer X { T x[]; };
layout(binding = 1) readonly buffer D { T dy[]; };
layout(binding = 2) writeonly buffer Y { T dw[]; };
layout(push_constant) uniform P {
  uint x_at, dy_at, dw_at, count, lane_bits;
  int batch, channels, made, groups;  // channels: of a group; made: of all groups
  int in_size[3], out_size[3], kernel[3], strides[3], dilations[3], pads[3];
};

shared float parts[256];

void main() {
  const uint t = gl_LocalInvocationID.x, lanes = 1u << lane_bits, lane = t & (lanes - 1);
  const uint i = index() >> lane_bits;
  float sum = 0.0;
  if (i < count) {
    const int kw = int(i) % kernel[2], kh = int(i) / kernel[2] % kernel[1], plane = int(i) / kernel[2] / kernel[1];
    const int kd = plane % kernel[0], c = plane / kernel[0] % channels, m = plane / kernel[0] / channels;
    const ivec3 step = ivec3(strides[0], strides[1], strides[2]);
    const ivec3 sizes = ivec3(in_size[0], in_size[1], in_size[2]);
    const ivec3 base = ivec3(kd * dilations[0] - pads[0], kh * dilations[1] - pads[1], kw * dilations[2] - pads[2]);
    // The outputs whose tap is inside x.
    const ivec3 first = max(step - 1 - base, ivec3(0)) / step;
    const ivec3 end = min((max(sizes - base, ivec3(0)) + step - 1) / step, ivec3(out_size[0], out_size[1], out_size[2]));
    const ivec3 size = max(end - first, ivec3(0));
    const int each = size.x * size.y * size.z, from = m / (made / groups) * channels + c;
    for (int e = int(lane); e < batch * each; e += int(lanes)) {
      const int n = e / each, rest = e % each;
      const ivec3 o = first + ivec3(rest / (size.y * size.z), rest / size.z % size.y, rest % size.z);
      const ivec3 at = o * step + base;
      const int d_at = (((n * made + m) * out_size[0] + o.x) * out_size[1] + o.y) * out_size[2] + o.z;
      const int v_at = (((n * groups * channels + from) * sizes.x + at.x) * sizes.y + at.y) * sizes.z + at.z;
      sum += float(dy[dy_at + uint(d_at)]) * float(x[x_at + uint(v_at)]);
    }
  }
  if (lane_bits != 0) {
    parts[t] = sum;
    barrier();
    for (uint s = lanes / 2; s > 0; s /= 2) {
      if (lane < s) parts[t] += parts[t + s];
      barrier();
    }
    sum = parts[t];
  }
  if (i < count && lane == 0) dw[dw_at + i] = T(sum);
}
