// SPDX-License-Identifier: Apache-2.0
// A workgroup computes kTile rows by kTile columns of a product, from tiles of depth 16 in shared memory.
//   slice   kTile * kTile / 16 invocations, which compute all rows and columns. Each computes 4 rows, one after the other, by 4
//           columns that are kQuads apart, so that neighboring invocations read and write neighboring elements. The kSlices
//           slices of a workgroup divide the depth, and their sums are added in order at the end.
//   part    a share of the depth for a workgroup of its own. The kParts workgroups of a tile follow each other along z and store
//           partial sums, which add_parts.comp adds.
//
// The including shader declares kTile (64 or 32), kSlices and kParts. It defines the elements of both factors, which are 0
// beyond the product:
//   vec4 left(uint k, uint quad)   element k of rows 4 * quad to 4 * quad + 3 of the workgroup
//   vec4 right(uint k, uint quad)  element k of columns quad, quad + kQuads, quad + 2 * kQuads and quad + 3 * kQuads
//   kLeftLine, kRightLine          whether the elements of a row, of a column lie side by side
vec4 left(uint k, uint quad);
vec4 right(uint k, uint quad);

#define TILE_DEPTH 16
const uint kQuads = kTile / 4;
const uint kSlice = kTile * kTile / 16;             // invocations
const uint kReads = TILE_DEPTH * kQuads / kSlice;   // fours that each of them reads of one side
const uint kStep = kQuads + 1;                      // between the rows of a tile, so that banks differ
const uint kSide = TILE_DEPTH * kStep;

shared TILE4 tile_a[kSlices * kSide];
shared TILE4 tile_b[kSlices * kSide];
shared vec4 slice_sums[kSlices > 1 ? (kSlices - 1) * 4 * kSlice : 1];

// The place of an invocation's i-th four in a tile: along the depth, and its quad.
uvec2 place(bool line, uint t, uint i) {
  const uint e = t + i * kSlice;
  return line ? uvec2(e % TILE_DEPTH, e / TILE_DEPTH) : uvec2(e / kQuads, e % kQuads);
}

uint part_number() { return kParts > 1 ? gl_WorkGroupID.z / (gl_NumWorkGroups.z / kParts) : 0; }
// The workgroup along z without its part.
uint entry() { return kParts > 1 ? gl_WorkGroupID.z % (gl_NumWorkGroups.z / kParts) : gl_WorkGroupID.z; }
uint row_group() { return gl_LocalInvocationID.x % kSlice / kQuads; }
uint column_group() { return gl_LocalInvocationID.x % kQuads; }
// Whether this invocation has the result: those of the first slice.
bool has_sums() { return gl_LocalInvocationID.x < kSlice; }

// Row i of the result: the sums of row 4 * row_group() + i; its element j is of column column_group() + j * kQuads.
mat4 multiplied(uint depth) {
  const uint t = gl_LocalInvocationID.x % kSlice, slice = gl_LocalInvocationID.x / kSlice;
  const uint base = slice * kSide, all_steps = (depth + TILE_DEPTH * kSlices - 1) / (TILE_DEPTH * kSlices);
  const uint most = (all_steps + kParts - 1) / kParts, earlier = min(part_number() * most, all_steps);
  const uint steps = min(most, all_steps - earlier);
  mat4 sum = mat4(0.0);
  vec4 a[kReads], b[kReads];
  uint k0 = (earlier * kSlices + slice) * TILE_DEPTH;
  [[unroll]] for (uint i = 0; i < kReads; i++) {
    const uvec2 at = place(kLeftLine, t, i), bt = place(kRightLine, t, i);
    a[i] = left(k0 + at.x, at.y);
    b[i] = right(k0 + bt.x, bt.y);
  }
  for (uint step = 0; step < steps; step++) {
    [[unroll]] for (uint i = 0; i < kReads; i++) {
      const uvec2 at = place(kLeftLine, t, i), bt = place(kRightLine, t, i);
      tile_a[base + at.x * kStep + at.y] = TILE4(a[i]);
      tile_b[base + bt.x * kStep + bt.y] = TILE4(b[i]);
    }
    barrier();
    // Reads the next tiles while these are multiplied.
    k0 += TILE_DEPTH * kSlices;
    if (step + 1 < steps) {
      [[unroll]] for (uint i = 0; i < kReads; i++) {
        const uvec2 at = place(kLeftLine, t, i), bt = place(kRightLine, t, i);
        a[i] = left(k0 + at.x, at.y);
        b[i] = right(k0 + bt.x, bt.y);
      }
    }
    [[unroll]] for (uint k = 0; k < TILE_DEPTH; k++) {
      const vec4 p = vec4(tile_a[base + k * kStep + t / kQuads]), q = vec4(tile_b[base + k * kStep + t % kQuads]);
      sum[0] += p.x * q;
      sum[1] += p.y * q;
      sum[2] += p.z * q;
      sum[3] += p.w * q;
    }
    barrier();
  }
  if (kSlices > 1) {
    if (slice > 0)
      [[unroll]] for (uint i = 0; i < 4; i++) slice_sums[((slice - 1) * 4 + i) * kSlice + t] = sum[i];
    barrier();
    if (slice == 0)
      [[unroll]] for (uint s = 0; s + 1 < kSlices; s++)
        [[unroll]] for (uint i = 0; i < 4; i++) sum[i] += slice_sums[(s * 4 + i) * kSlice + t];
  }
  return sum;
}
