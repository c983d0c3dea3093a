#pragma once

#include <cstdint>

/// The transforms of Winograd's convolutions with 3 x 3 taps, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// Matrices of a convolution that makes `out` x `out` pixels of (out + 2) x (out + 2): y = A^T [(G w G^T) . (B^T x B)]
/// A. `out` is 4 or 2; the points of the polynomials are 0, +-sqrt(1/2), +-sqrt(2) and infinity, or 0, +-1 and
/// infinity. Points are numbered row by row; here one block of channels is transformed.
struct Winograd {
  int64_t block;  ///< channels of a block

  /// B^T x B of `tiles` neighbours in a row, at v[point * point_step + tile * tile_step]. rows: out + 2 lines of
  /// `width` pixels, or a null pointer for a line of zeros. The first tile begins at pixel `first`, which may be
  /// negative; pixels outside of the lines are zeros. At most `kMostTiles` tiles.
  void (*input)(int out, const float* const* rows, int64_t width, int64_t first, int64_t tiles, float* v,
                int64_t point_step, int64_t tile_step);

  /// A^T m A + bias[channel] of `tiles` neighbours in a row, to `rows` lines, `row_step` floats apart, of `width`
  /// pixels from the first tile on. False: some of it, or of pixels beyond the lines, is infinite or NaN, which may
  /// come of other pixels of the tile.
  bool (*output)(int out, const float* m, int64_t point_step, int64_t tile_step, const float* bias, int64_t tiles,
                 int64_t rows, int64_t width, float* y, int64_t row_step);
};

constexpr int64_t kMostTiles = 8;

/// For this processor.
const Winograd& winograd();

const Winograd& winograd_base();
const Winograd& winograd_avx2();
const Winograd& winograd_avx512();

}  // namespace moka::devices::cpu::vector
