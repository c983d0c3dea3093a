// A workgroup of 256 computes 8 rows of a matrix times a vector, 32 invocations a row.
#define ROW_LANES 32
shared vec4 row_part[256];

// The sums of the 32 invocations of this one's row.
vec4 sum_of_row(vec4 mine) {
  const uint t = gl_LocalInvocationID.x, lane = t % ROW_LANES;
  row_part[t] = mine;
  barrier();
  for (uint n = ROW_LANES / 2; n > 0; n /= 2) {
    if (lane < n) row_part[t] += row_part[t + n];
    barrier();
  }
  return row_part[t - lane];
}
