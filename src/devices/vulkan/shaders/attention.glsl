// SPDX-License-Identifier: Apache-2.0
// softmax(query key^T * scale + mask) value for 16 rows of one head in a workgroup, 64 keys at a time. The softmax of the
// keys so far is corrected when a larger score is found, so that scores are never stored. The including shader declares
// the buffers, and defines HAS_BOOL_MASK if the mask is boolean.
//
// For scores, 16 invocations share a row, and each computes 4 keys. For the result, an invocation computes up to 4 rows, so
// that each value it reads serves all of them.

#define ROWS 16
#define KEYS 64
#define CHUNK4 8  // fours of a row or a key in shared memory at a time
#define LANES 16

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kWidth = 64;
layout(constant_id = 1) const uint kMade = 64;
layout(constant_id = 2) const uint kColumns = 4;  // of the result for each lane of a row
layout(constant_id = 3) const bool kMask = false;
#include "heads.glsl"
const uint kRows = kColumns % 4 == 0 ? 4 : kColumns % 2 == 0 ? 2 : 1;  // of the result for each invocation
const uint kAcross = LANES * kRows;                                   // invocations along its columns
const uint kMine = kColumns / kRows;                                  // columns of each

shared TILE4 queries[ROWS][CHUNK4];
shared TILE4 some_keys[KEYS][CHUNK4];
shared float scores[KEYS][ROWS];
shared float lane_values[ROWS][LANES];
shared float kept[ROWS];  // by which earlier sums are multiplied; at the end, the total

// The place of a key's k-th vector of four. In plain order, the k-th vectors of all keys would lie in the same banks.
uint key_place(uint key, uint k) { return (key ^ k) % CHUNK4; }

vec4 query_four(uint first, uint row, uint column) {
  vec4 v = vec4(0.0);
  [[unroll]] for (uint i = 0; i < 4; i++)
    if (row < rows && column + i < kWidth) v[i] = float(query[first + row * query_row + (column + i) * query_column]);
  return v;
}

vec4 key_four(uint first, uint row, uint column) {
  vec4 v = vec4(0.0);
  [[unroll]] for (uint i = 0; i < 4; i++)
    if (row < keys && column + i < kWidth) v[i] = float(key[first + row * key_row + (column + i) * key_column]);
  return v;
}

void main() {
  const uint t = gl_LocalInvocationID.x, lane = t % LANES, r = t / LANES;
  const uint first_row = gl_WorkGroupID.x * ROWS, row = first_row + r;
  const uint my_rows = t / kAcross * kRows, first_column = gl_WorkGroupID.y * LANES * kColumns + t % kAcross;
  const uint q0 = query_at + head(0), k0 = key_at + head(1), v0 = value_at + head(2), m0 = mask_at + head(3);
  const float lowest = uintBitsToFloat(0xff800000u);
  float top = lowest, total = 0.0;  // of the row, and of this lane's keys
  float sum[kRows][kMine];
  [[unroll]] for (uint i = 0; i < kRows; i++)
    [[unroll]] for (uint c = 0; c < kMine; c++) sum[i][c] = 0.0;

  for (uint first = 0; first < keys; first += KEYS) {
    float s[KEYS / LANES];
    [[unroll]] for (uint j = 0; j < KEYS / LANES; j++) s[j] = 0.0;
    for (uint e = 0; e < kWidth; e += 4 * CHUNK4) {
      for (uint i = t; i < ROWS * CHUNK4; i += 256)
        queries[i / CHUNK4][i % CHUNK4] = TILE4(query_four(q0, first_row + i / CHUNK4, e + i % CHUNK4 * 4));
      for (uint i = t; i < KEYS * CHUNK4; i += 256)
        some_keys[i / CHUNK4][key_place(i / CHUNK4, i % CHUNK4)] = TILE4(key_four(k0, first + i / CHUNK4, e + i % CHUNK4 * 4));
      barrier();
      [[unroll]] for (uint k = 0; k < CHUNK4; k++) {
        const vec4 q = vec4(queries[r][k]);
        [[unroll]] for (uint j = 0; j < KEYS / LANES; j++) s[j] += dot(q, vec4(some_keys[lane + j * LANES][key_place(lane + j * LANES, k)]));
      }
      barrier();
    }
    float largest = lowest;
    [[unroll]] for (uint j = 0; j < KEYS / LANES; j++) {
      const uint k = first + lane + j * LANES;
      float v = s[j] * scale;
      if (k >= keys) {
        v = lowest;
      } else if (kMask && row < rows) {
        const uint at = m0 + row * mask_row + k * mask_column;
#ifdef HAS_BOOL_MASK
        if (uint(mask[at]) == 0) v = hidden;
#else
        v += float(mask[at]);
#endif
      }
      s[j] = v;
      largest = greater_of(largest, v);
    }
    lane_values[r][lane] = largest;
    barrier();
    float now = top;
    [[unroll]] for (uint l = 0; l < LANES; l++) now = greater_of(now, lane_values[r][l]);
    // If all keys so far are masked, their weights and the total are 0.
    const float base = now == lowest ? 0.0 : now, correction = exp_of(top - base);
    top = now;
    total *= correction;
    if (lane == 0) kept[r] = correction;
    [[unroll]] for (uint j = 0; j < KEYS / LANES; j++) {
      const float p = first + lane + j * LANES < keys ? exp_of(s[j] - base) : 0.0;
      scores[lane + j * LANES][r] = p;
      total += p;
    }
    barrier();
    [[unroll]] for (uint i = 0; i < kRows; i++)
      [[unroll]] for (uint c = 0; c < kMine; c++) sum[i][c] *= kept[my_rows + i];
    const uint some = min(KEYS, keys - first);
    for (uint k = 0; k < some; k++) {
      const uint from = v0 + (first + k) * value_row;
      [[unroll]] for (uint c = 0; c < kMine; c++) {
        const uint column = first_column + c * kAcross;
        const float v = column < kMade ? float(value[from + column * value_column]) : 0.0;
        [[unroll]] for (uint i = 0; i < kRows; i++) sum[i][c] += scores[k][my_rows + i] * v;
      }
    }
    barrier();
  }
  lane_values[r][lane] = total;
  barrier();
  if (lane == 0) {
    float all = 0.0;
    [[unroll]] for (uint l = 0; l < LANES; l++) all += lane_values[r][l];
    kept[r] = all;
  }
  barrier();
  [[unroll]] for (uint i = 0; i < kRows; i++) {
    const uint row = first_row + my_rows + i;
    if (row >= rows) break;
    const uint to = y_at + head(4) + row * y_row;
    [[unroll]] for (uint c = 0; c < kMine; c++) {
      const uint column = first_column + c * kAcross;
      if (column < kMade) y[to + column] = T(sum[i][c] / kept[my_rows + i]);
    }
  }
}
