// A workgroup of kTile * kTile / 16 invocations computes kTile rows by kTile columns of a product, each invocation 4 by 4
// of them, from tiles of depth 16 in shared memory. What includes this declares kTile, 64 or 32, and writes the tiles:
// element (k, row) of the left side at tile_a[k * kQuads + row / 4][row % 4], of the right side likewise by columns.
#define TILE_DEPTH 16
const uint kQuads = kTile / 4;
const uint kInvocations = kTile * kTile / 16;

shared TILE4 tile_a[TILE_DEPTH * kQuads];
shared TILE4 tile_b[TILE_DEPTH * kQuads];

// Rows of sum are those of the left side from `row_group * 4` on.
void add_tiles(inout mat4 sum, uint row_group, uint column_group) {
  [[unroll]] for (uint k = 0; k < TILE_DEPTH; k++) {
    const vec4 a = vec4(tile_a[k * kQuads + row_group]), b = vec4(tile_b[k * kQuads + column_group]);
    sum[0] += a.x * b;
    sum[1] += a.y * b;
    sum[2] += a.z * b;
    sum[3] += a.w * b;
  }
}
