#pragma once

#include <cstdint>

/// The transforms of Winograd's convolutions, compiled once for each instruction set.
namespace moka::devices::cpu::vector {

/// How a tile is made along one axis: `out` sums of `taps` products each, `stride` numbers apart, of `in` numbers, by
/// `points` products with `weights` different factors: product p is with factor min(p, weights - 1).
struct WinogradAxis {
  int taps, stride, out, in, points, weights;
};

/// y = A^T [(G w G^T) . (B^T x B)] A with the matrices of two axes. Points and weights are numbered row by row; one
/// block of channels is transformed at a time.
struct Winograd {
  WinogradAxis down, across;
  int64_t most_tiles;  ///< that a call may be given

  int points() const { return down.points * across.points; }
  int weights() const { return down.weights * across.weights; }
  /// The number of the weight that a point is multiplied with.
  int weight_of(int point) const {
    const int i = point / across.points, j = point % across.points;
    return (i < down.weights ? i : down.weights - 1) * across.weights + (j < across.weights ? j : across.weights - 1);
  }

  /// G w G^T in double, rounded once, of filters of taps row by row, one for each of `channels` inputs, `channel_step`
  /// floats apart, and of `count` outputs, `filter_step` apart: those of a channel side by side at
  /// u[weight * weight_step + channel * width], zeros behind them up to `width`, a whole number of eights.
  void (*filters)(const float* w, int64_t filter_step, int64_t channel_step, int64_t channels, int64_t count,
                  int64_t width, float* u, int64_t weight_step);

  /// B^T x B of `tiles` neighbours in a row, at v[point * point_step + tile * tile_step]. rows: down.in lines of
  /// `width` pixels, or a null pointer for a line of zeros. The first tile begins at pixel `first`, which may be
  /// negative; pixels outside of the lines are zeros.
  void (*input)(const float* const* rows, int64_t width, int64_t first, int64_t tiles, float* v, int64_t point_step,
                int64_t tile_step);

  /// A^T m A + bias[channel] of `tiles` neighbours in a row, to `rows` lines, `row_step` floats apart, of `width`
  /// pixels from the first tile on. False: some of it, or of pixels beyond the lines, is infinite or NaN, which may
  /// come of other pixels of the tile.
  bool (*output)(const float* m, int64_t point_step, int64_t tile_step, const float* bias, int64_t tiles, int64_t rows,
                 int64_t width, float* y, int64_t row_step);
};

constexpr int kMostLines = 9;  ///< down.in

struct Winograds {
  int64_t block;  ///< channels of a block
  const Winograd* begin;
  int64_t count;
};

/// For this processor.
const Winograds& winograds();

const Winograds& winograds_base();
const Winograds& winograds_avx2();
const Winograds& winograds_avx512();

}  // namespace moka::devices::cpu::vector
