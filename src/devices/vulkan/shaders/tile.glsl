// A workgroup of 256 computes 64 rows by 64 columns of a product, each invocation 4 by 4 of them, from tiles of depth
// 16 in shared memory. What includes this writes the tiles: element (k, row) of the left side at
// tile_a[k][row / 4][row % 4], element (k, column) of the right side at tile_b[k][column / 4][column % 4].
#define TILE 64
#define TILE_DEPTH 16

shared vec4 tile_a[TILE_DEPTH][TILE / 4];
shared vec4 tile_b[TILE_DEPTH][TILE / 4];

// Rows of sum are those of the left side from `row_group * 4` on.
void add_tiles(inout mat4 sum, uint row_group, uint column_group) {
  [[unroll]] for (uint k = 0; k < TILE_DEPTH; k++) {
    const vec4 a = tile_a[k][row_group], b = tile_b[k][column_group];
    sum[0] += a.x * b;
    sum[1] += a.y * b;
    sum[2] += a.z * b;
    sum[3] += a.w * b;
  }
}
