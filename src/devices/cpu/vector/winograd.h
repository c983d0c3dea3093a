// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The transforms of Winograd convolutions, compiled once for each instruction set.
///
/// A convolution then takes three steps (kernels/conv_winograd.cpp):
///
///   w.filters(...)   once: the weights of each pair of channels become weights() numbers
///   w.input(...)     a tile of the image becomes points() numbers per channel
///   GEMM             for each point: [tiles, input channels] times [input channels, output channels]
///   w.output(...)    the products of a tile's points become its output pixels
///
/// winograds() lists the transforms, from which the kernel chooses by their cost.
namespace moka::devices::cpu::vector {

/// The transform along one axis. It computes `out` outputs, `stride` inputs apart, of `taps` taps each, from `in`
/// inputs with `points` products. Products have `weights` different factors: product p has factor min(p, weights - 1).
struct WinogradAxis {
  int taps, stride, out, in, points, weights;
};

/// y = A^T [(G w G^T) . (B^T x B)] A, with the matrices A, B and G of each axis. Points and weights are numbered row by
/// row. One block of channels is transformed at a time.
struct Winograd {
  WinogradAxis down, across;
  int64_t most_tiles;  ///< most tiles per call

  int points() const { return down.points * across.points; }
  int weights() const { return down.weights * across.weights; }
  /// The number of the weight that multiplies a point.
  int weight_of(int point) const {
    const int i = point / across.points, j = point % across.points;
    return (i < down.weights ? i : down.weights - 1) * across.weights + (j < across.weights ? j : across.weights - 1);
  }

  /// Computes G w G^T in double, rounded once. The filter from an input channel to an output, with its taps row by row,
  /// is at w + channel * channel_step + output * filter_step. The results of all `count` outputs are adjacent at
  /// u[weight * weight_step + channel * width], with zeros up to `width`, a multiple of eight.
  void (*filters)(const float* w, int64_t filter_step, int64_t channel_step, int64_t channels, int64_t count,
                  int64_t width, float* u, int64_t weight_step);

  /// The same for filters of `width` outputs that lie side by side: tap t of a channel is at
  /// w[channel * channel_step + t * width].
  void (*filter_rows)(const float* w, int64_t channel_step, int64_t channels, int64_t width, float* u,
                      int64_t weight_step);

  /// Computes B^T x B of `tiles` adjacent tiles to v[point * point_step + tile * tile_step]. `rows` are down.in lines
  /// of `width` pixels; a null pointer is a line of zeros. The first tile begins at pixel `first`, which may be
  /// negative. Pixels outside the lines are zeros.
  void (*input)(const float* const* rows, int64_t width, int64_t first, int64_t tiles, float* v, int64_t point_step,
                int64_t tile_step);

  /// Computes A^T m A + bias[channel] of `tiles` adjacent tiles to `rows` lines of `width` pixels, `row_step` floats
  /// apart. Returns false if any result, even of a pixel beyond the lines, is infinite or NaN: it may then come from an
  /// input that the pixel does not depend on.
  bool (*output)(const float* m, int64_t point_step, int64_t tile_step, const float* bias, int64_t tiles, int64_t rows,
                 int64_t width, float* y, int64_t row_step);
};

constexpr int kMostLines = 9;  ///< largest down.in
/// Most pixels of a line that a call of `input` reads. Its transformed columns stay in the cache.
constexpr int64_t kMostColumns = 34;

struct Winograds {
  int64_t block;  ///< channels per block

  /// Sets bits of to[p]: 1 if one of the `block` numbers of pixel p is infinite or NaN, 2 if one is NaN.
  void (*note_odd)(const float* x, int64_t pixels, uint8_t* to);
  /// Whether the n numbers at x, a multiple of `block`, are neither infinite nor NaN.
  bool (*are_finite)(const float* x, int64_t n);
  /// to[p * block + i] += sum of values[p * n + t] * taps[t * block + i]. `taps` and `to` are aligned to 64 bytes.
  void (*sum_taps)(const double* taps, int64_t n, const double* values, int64_t pixels, double* to);

  const Winograd* begin;
  int64_t count;
};

/// The table for this processor.
const Winograds& winograds();

const Winograds& winograds_base();
const Winograds& winograds_avx2();
const Winograds& winograds_avx512();

}  // namespace moka::devices::cpu::vector
