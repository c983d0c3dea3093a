// SPDX-License-Identifier: Apache-2.0
// attention.glsl for devices whose shared memory is no faster than buffers. A team of 8 invocations computes 8 rows of one
// head and goes through the keys in groups of 64. Each invocation computes the scores of 8 keys, then 8 columns of the
// result. Only scores go through shared memory. The including shader declares the buffers, those of query, key and value
// also as vec4, and defines HAS_BOOL_MASK if the mask is boolean.

layout(constant_id = 0) const uint kWidth = 64;
layout(constant_id = 1) const uint kMade = 64;
layout(constant_id = 2) const uint kMask = MASK_NONE;
layout(constant_id = 3) const uint kStep = 1;  // of columns of queries and keys: 4 where both are read in fours
layout(constant_id = 4) const bool kValueFours = false;
layout(constant_id = 5) const uint kTeams = 1;  // of 8 invocations
layout(constant_id = 6) const bool kIsSubgroup = false;  // the workgroup is one
layout(local_size_x_id = 7) in;
const uint kSide = 8 * kStep;
#extension GL_KHR_shader_subgroup_basic : require
#include "block.glsl"
#include "heads.glsl"
READ_SIDE(read_query, query, query4, kStep == 4, true)
READ_SIDE(read_key, key, key4, kStep == 4, true)

#define KEYS 64
shared vec4 tops[kTeams * 8 * 2];        // of each invocation's keys, for 8 rows
shared vec4 weights[kTeams * KEYS * 2];  // of a key, for 8 rows

#ifdef HAS_BOOL_MASK
float mask_of(uint at) { return float(uint(mask[at])); }
float masked(float score, float m) { return m == 0.0 ? hidden : score; }
#else
float mask_of(uint at) { return float(mask[at]); }
float masked(float score, float m) { return score + m; }
#endif

// Drivers that compute on the processor divide a shader at each barrier of a workgroup, which takes long to compile.
void wait_for_others() {
  if (kIsSubgroup)
    subgroupBarrier();
  else
    barrier();
}

void main() {
  const uint t = gl_LocalInvocationID.x, lane = t % 8, team = t / 8;
  const uint first_row = (gl_WorkGroupID.x * kTeams + team) * 8;
  const uint first_column = gl_WorkGroupID.y * 64 + lane * 8;
  const uint q0 = query_at + head(0), k0 = key_at + head(1), v0 = value_at + head(2), m0 = mask_at + head(3);
  const float lowest = uintBitsToFloat(0xff800000u);
  float top[8], total[8], sum[64];
  [[unroll]] for (uint r = 0; r < 8; r++) {
    top[r] = lowest;
    total[r] = 0.0;
  }
  [[unroll]] for (uint n = 0; n < 64; n++) sum[n] = 0.0;

  for (uint first = 0; first < keys; first += KEYS) {
    const uint mine = first + lane * 8;
    float s[64];  // of each key, 8 rows
    [[unroll]] for (uint n = 0; n < 64; n++) s[n] = 0.0;
    for (uint e = 0; e < kWidth; e += kStep) {
      float left[kSide], right[kSide];
      read_query(q0, first_row, rows, query_row, e, query_column, left);
      read_key(k0, mine, keys, key_row, e, key_column, right);
      [[unroll]] for (uint j = 0; j < kStep; j++)
        [[unroll]] for (uint n = 0; n < 64; n++) s[n] += left[n % 8 * kStep + j] * right[n / 8 * kStep + j];
    }
    // Scores go to shared memory, because drivers take long to compile code in which many values are live at once. The loop
    // is not unrolled for the same reason; instead, scores of later keys move up.
    const uint own = (team * 8 + lane) * 16;
    float highest[8];
    [[unroll]] for (uint r = 0; r < 8; r++) highest[r] = lowest;
    [[dont_unroll]] for (uint n = 0; n < 8; n++) {
      const uint k = mine + n, column = m0 + min(k, keys - 1) * mask_column;
      float of_key[8], m = 0.0;
      if (kMask == MASK_OF_KEYS) m = mask_of(column);
      [[unroll]] for (uint r = 0; r < 8; r++) {
        float v = s[r] * scale;
        if (kMask == MASK_OF_ROWS) m = mask_of(column + min(first_row + r, rows - 1) * mask_row);
        if (kMask != MASK_NONE) v = masked(v, m);
        of_key[r] = k < keys ? v : lowest;
        highest[r] = greater_of(highest[r], of_key[r]);
      }
      [[unroll]] for (uint h = 0; h < 2; h++)
        weights[own + n * 2 + h] = vec4(of_key[h * 4], of_key[h * 4 + 1], of_key[h * 4 + 2], of_key[h * 4 + 3]);
      [[unroll]] for (uint i = 0; i < 56; i++) s[i] = s[i + 8];
    }
    tops[t * 2] = vec4(highest[0], highest[1], highest[2], highest[3]);
    tops[t * 2 + 1] = vec4(highest[4], highest[5], highest[6], highest[7]);
    wait_for_others();
    float now[8], base[8], kept[8];
    [[unroll]] for (uint r = 0; r < 8; r++) now[r] = top[r];
    [[dont_unroll]] for (uint l = 0; l < 8; l++)
      [[unroll]] for (uint h = 0; h < 2; h++) {
        const vec4 other = tops[(team * 8 + l) * 2 + h];
        [[unroll]] for (uint i = 0; i < 4; i++) now[h * 4 + i] = greater_of(now[h * 4 + i], other[i]);
      }
    [[unroll]] for (uint r = 0; r < 8; r++) {
      // If all keys so far are masked, their weights and the total are 0.
      base[r] = now[r] == lowest ? 0.0 : now[r];
      kept[r] = exp_of(top[r] - base[r]);
      top[r] = now[r];
      total[r] *= kept[r];
    }
    [[dont_unroll]] for (uint at = own; at < own + 16; at += 2) {
      vec4 of_key[2] = {weights[at], weights[at + 1]};
      [[unroll]] for (uint r = 0; r < 8; r++) of_key[r / 4][r % 4] = exp_of(of_key[r / 4][r % 4] - base[r]);
      weights[at] = of_key[0];
      weights[at + 1] = of_key[1];
    }
    wait_for_others();
    [[unroll]] for (uint n = 0; n < 64; n++) sum[n] *= kept[n / 8];
    for (uint k = 0; k < min(KEYS, keys - first); k++) {
      const vec4 p[2] = {weights[(team * KEYS + k) * 2], weights[(team * KEYS + k) * 2 + 1]};
      const uint from = v0 + (first + k) * value_row;
      float v[8];
      if (kValueFours) {
        [[unroll]] for (uint h = 0; h < 2; h++) {
          const vec4 four = vec4(value4[(from + min(first_column + h * 4, kMade - 4)) / 4]);
          [[unroll]] for (uint i = 0; i < 4; i++) v[h * 4 + i] = four[i];
        }
      } else {
        [[unroll]] for (uint n = 0; n < 8; n++)
          v[n] = float(value[from + min(first_column + n, kMade - 1) * value_column]);
      }
      [[unroll]] for (uint r = 0; r < 8; r++) {
        total[r] += p[r / 4][r % 4];
        [[unroll]] for (uint n = 0; n < 8; n++) sum[r * 8 + n] += p[r / 4][r % 4] * v[n];
      }
    }
  }

  const uint to = y_at + head(4);
  // Unrolling this loop would make the shader slow to compile. Instead, sums move up row by row.
  [[dont_unroll]] for (uint r = first_row; r < min(first_row + 8, rows); r++) {
    float line[8];
    [[unroll]] for (uint n = 0; n < 8; n++) line[n] = sum[n] / total[0];
    [[dont_unroll]] for (uint n = first_column; n < min(first_column + 8, kMade); n++) {
      y[to + r * y_row + n] = T(line[0]);
      [[unroll]] for (uint m = 0; m < 7; m++) line[m] = line[m + 1];
    }
    [[unroll]] for (uint n = 0; n < 56; n++) sum[n] = sum[n + 8];
    [[unroll]] for (uint n = 0; n < 7; n++) total[n] = total[n + 1];
  }
}
