// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "devices/cpu/common/common.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/cpu/vector/winograd.h"
#include "ops/common/window.h"

/// How a Winograd convolution is divided.
namespace moka::devices::cpu {

/// Adjacent tiles in a line of tiles of a slice.
struct Row {
  int64_t image, slice, y, x, count;
  int64_t at;  ///< index of the first tile in its chunk
};

/// Tiles that go through all steps together: the tiles [begin, end) of `planes` planes from `plane` on. A plane is an
/// output slice of an image.
struct Chunk {
  int64_t plane, planes;  ///< the first, and how many
  int64_t begin, end;

  int64_t width() const { return end - begin; }
  int64_t tiles() const { return planes * width(); }
};

/// The window has the axes slices, lines and columns. Lines and columns are transformed. The products of the window's
/// slices are summed, so the transform of an input slice serves several output slices.
struct WinogradBlocking {
  ops::Window w;
  const vector::Winograd* f;
  bool is_compressed;             ///< whether each chunk transforms the weights
  int64_t in, out;                ///< channels
  int64_t in_groups, out_groups;  ///< blocks of channels
  int64_t down, across, tiles;    ///< tiles along the lines and columns of a slice; all tiles
  int64_t slabs, spans;           ///< divisions of the slices and of a slice's tiles, if slices are summed
  int64_t chunks, parts;          ///< divisions of the tiles and of the output channels
  int64_t chunk;                  ///< tiles per division at most
  int64_t in_step, out_step;      ///< floats from point to point in a chunk's transformed tiles and in their products
  int64_t at_once;                ///< input channels of a panel whose transformed weights are multiplied at once

  int64_t panel() const { return vector::gemm().panel; }
  int64_t block() const { return vector::winograds().block; }
  int64_t panels() const { return (out_groups * block() + panel() - 1) / panel(); }
  int64_t width(int64_t p) const { return std::min(panel(), out_groups * block() - p * panel()); }
  int64_t first(int64_t part) const { return panels() * part / parts; }
  /// Slices of the window.
  int64_t summed() const { return w.kernel[0]; }
  int64_t sums() const { return f->points() * (in_step + out_step); }
  /// Outputs of a tile.
  int64_t pixels() const { return f->down.out * f->across.out; }
  /// Bytes for the tiles of a chunk: sums() floats, and for each tile a byte per block of output channels, one more
  /// byte, and the bytes of NonFiniteWindows.
  int64_t scratch() const { return sums() * 4 + chunk * (out_groups + 1 + 1 + pixels()); }
  /// Lines and columns of y that a row of tiles covers.
  std::pair<int64_t, int64_t> outputs(const Row& r) const {
    const int64_t high = f->down.out, wide = f->across.out;
    return {std::min(high, w.out[1] - r.y * high), std::min(r.count * wide, w.out[2] - r.x * wide)};
  }
  /// Transformed weights per pair of an input and an output channel.
  int64_t weights() const { return summed() * f->weights(); }
  /// Offset into the transformed weights: [panel of vector/gemm.h][slice of the window][weight].
  int64_t weight_at(int64_t p, int64_t slice, int64_t weight) const {
    return p * panel() * in * weights() + (slice * f->weights() + weight) * in * width(p);
  }
  /// Floats of a block of input channels of an image.
  int64_t in_volume() const { return w.in_count() * block(); }
  /// Floats from the start of y to the first result of a row in a block of output channels.
  int64_t out_at(const Row& r, int64_t group) const {
    return ((((r.image * out_groups + group) * w.out[0] + r.slice) * w.out[1] + r.y * f->down.out) * w.out[2] +
            r.x * f->across.out) *
           block();
  }

  Chunk chunk_of(int64_t i) const;

  /// Calls f for the tiles of a chunk, and for the tiles at the same places in the `more` slices after it.
  template <class F>
  void each_row(const Chunk& c, int64_t more, F call) const {
    for (int64_t i = 0; i < c.planes + more; i++)
      for (int64_t t = c.begin; t < c.end;) {
        const int64_t x = t % across, line = t / across, plane = c.plane + line / down;
        const int64_t count = std::min({f->most_tiles, across - x, c.end - t});
        call(Row{plane / w.out[0], plane % w.out[0] + i, line % down, x, count, i * c.width() + t - c.begin});
        t += count;
      }
  }
};

/// The cheapest blocking. nullopt: direct convolution is cheaper (not considered if `asked`), or no transform fits.
/// `compressed`: each chunk transforms the weights again.
std::optional<WinogradBlocking> best_blocking(const ops::Window& window, int64_t images, int64_t in, int64_t out,
                                              const MatchCall& m, bool compressed);
/// The cost of a blocking in the units of conv_work.h: products, transforms of the input and the output, reading
/// weights.
double work(const WinogradBlocking& p);

}  // namespace moka::devices::cpu
