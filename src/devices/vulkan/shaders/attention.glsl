// softmax(query key^T * scale + mask) value for 16 rows of one head in a workgroup, 64 keys at a time. The softmax of the
// keys so far is corrected when a larger score is found, so that scores are never stored. What includes this declares the
// buffers, and HAS_BOOL_MASK where the mask is of bool.

#define ROWS 16
#define KEYS 64
#define CHUNK 32
#define LANES 16

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kWidth = 64;
layout(constant_id = 1) const uint kMade = 64;
layout(constant_id = 2) const uint kColumns = 4;  // of the result for each invocation
layout(constant_id = 3) const bool kMask = false;
#include "heads.glsl"

shared TILE1 queries[ROWS][CHUNK];
shared TILE1 some_keys[KEYS][CHUNK + 1];
shared float scores[ROWS][KEYS];

void main() {
  const uint t = gl_LocalInvocationID.x, lane = t % LANES, r = t / LANES;
  const uint first_row = gl_WorkGroupID.x * ROWS, row = first_row + r;
  const uint first_column = gl_WorkGroupID.y * LANES * kColumns;
  const uint q0 = query_at + head(0), k0 = key_at + head(1), v0 = value_at + head(2), m0 = mask_at + head(3);
  const float lowest = uintBitsToFloat(0xff800000u);
  float top = lowest, total = 0.0;
  float sum[kColumns];
  for (uint c = 0; c < kColumns; c++) sum[c] = 0.0;

  for (uint first = 0; first < keys; first += KEYS) {
    float s[KEYS / LANES];
    [[unroll]] for (uint j = 0; j < KEYS / LANES; j++) s[j] = 0.0;
    for (uint e = 0; e < kWidth; e += CHUNK) {
      for (uint i = t; i < ROWS * CHUNK; i += 256) {
        const uint at = first_row + i / CHUNK, column = e + i % CHUNK;
        queries[i / CHUNK][i % CHUNK] =
            TILE1(at < rows && column < kWidth ? float(query[q0 + at * query_row + column * query_column]) : 0.0);
      }
      for (uint i = t; i < KEYS * CHUNK; i += 256) {
        const uint at = first + i / CHUNK, column = e + i % CHUNK;
        some_keys[i / CHUNK][i % CHUNK] =
            TILE1(at < keys && column < kWidth ? float(key[k0 + at * key_row + column * key_column]) : 0.0);
      }
      barrier();
      for (uint k = 0; k < CHUNK; k++) {
        const float q = float(queries[r][k]);
        [[unroll]] for (uint j = 0; j < KEYS / LANES; j++) s[j] += q * float(some_keys[lane + j * LANES][k]);
      }
      barrier();
    }
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
      scores[r][lane + j * LANES] = v;
    }
    barrier();
    float now = top;
    for (uint k = 0; k < KEYS; k++) now = greater_of(now, scores[r][k]);
    // No key takes part so far: their weights are 0, and so is the total.
    const float base = now == lowest ? 0.0 : now;
    barrier();
    [[unroll]] for (uint j = 0; j < KEYS / LANES; j++) scores[r][lane + j * LANES] = exp_of(s[j] - base);
    barrier();
    const float kept = exp_of(top - base);
    top = now;
    total *= kept;
    for (uint c = 0; c < kColumns; c++) sum[c] *= kept;
    const uint some = min(KEYS, keys - first);
    for (uint k = 0; k < some; k++) {
      const float p = scores[r][k];
      total += p;
      const uint from = v0 + (first + k) * value_row;
      for (uint c = 0; c < kColumns; c++) {
        const uint column = first_column + lane + c * LANES;
        if (column < kMade) sum[c] += p * float(value[from + column * value_column]);
      }
    }
    barrier();
  }
  if (row >= rows) return;
  const uint to = y_at + head(4) + row * y_row;
  for (uint c = 0; c < kColumns; c++) {
    const uint column = first_column + lane + c * LANES;
    if (column < kMade) y[to + column] = T(sum[c] / total);
  }
}
