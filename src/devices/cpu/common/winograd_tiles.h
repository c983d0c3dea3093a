#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "devices/cpu/common/common.h"
#include "devices/cpu/common/stored_value.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/cpu/vector/winograd.h"
#include "ops/common/window.h"

namespace moka::devices::cpu {

/// Adjacent tiles in a line of tiles of an image.
struct Row {
  int64_t image, y, x, count;
  int64_t at;  ///< index of the first tile in its chunk
};

struct WinogradBlocking {
  ops::Window w;
  const vector::Winograd* f;
  int64_t in, out;                ///< channels
  int64_t in_groups, out_groups;  ///< blocks of channels
  int64_t summed;                 ///< rows of the window that are not transformed: their products are summed
  int64_t down, across, tiles;    ///< tiles along the axes of an image; all tiles
  int64_t chunks, parts;          ///< divisions of the tiles and of the output channels
  int64_t chunk;                  ///< most tiles per division
  int64_t in_step, out_step;      ///< floats from point to point in a chunk's transformed tiles and in their products

  int64_t panel() const { return vector::gemm().panel; }
  int64_t block() const { return vector::winograds().block; }
  int64_t panels() const { return (out_groups * block() + panel() - 1) / panel(); }
  int64_t width(int64_t p) const { return std::min(panel(), out_groups * block() - p * panel()); }
  int64_t first(int64_t part) const { return panels() * part / parts; }
  int64_t sums() const { return f->points() * (in_step + out_step); }
  /// Bytes: sums() floats, and a flag for each block of output channels of each tile of a chunk.
  int64_t scratch() const { return sums() * 4 + chunk * out_groups; }
  /// Lines and columns of y that a row of tiles covers.
  std::pair<int64_t, int64_t> outputs(const Row& r) const {
    const int64_t high = f->down.out, wide = f->across.out;
    return {std::min(high, w.out[0] - r.y * high), std::min(r.count * wide, w.out[1] - r.x * wide)};
  }
  /// Transformed weights per pair of an input and an output channel.
  int64_t weights() const { return summed * f->weights(); }
  /// Offset into the transformed weights: [panel of vector/gemm.h][summed row][weight].
  int64_t weight_at(int64_t p, int64_t line, int64_t weight) const {
    return p * panel() * in * weights() + (line * f->weights() + weight) * in * width(p);
  }
};

/// The weights as the file stores them.
struct Taps {
  const std::optional<kernel::StoredConstant>& stored;
  const float* weight;  ///< used if `stored` is empty

  /// Weights [first, first + n).
  void read(int64_t first, int64_t n, float* to) const {
    if (stored)
      stored_values(*stored, first, n, to);
    else
      std::copy_n(weight + first, n, to);
  }
};

/// Transforms a row of tiles of one block of input channels that begins at `plane`. `again`: at 2^-64 of its size,
/// which cannot overflow, and with zeros for infinities and NaN.
void transform_row(const WinogradBlocking& p, const float* plane, const Row& r, bool again, float* v);

/// Corrects one block of channels of adjacent tiles. The transforms have spread an infinity or a NaN of the input, or
/// an overflow, over whole tiles. Returns true if finite inputs are to be transformed again.
bool correct_tiles(const WinogradBlocking& p, const float* x, const Taps& weights, const float* bias, const Row& r,
                   int64_t group, float* y);

/// Corrects tiles for which correct_tiles returned true. `made` are the products of the tiles transformed again.
void correct_again(const WinogradBlocking& p, const float* x, const Taps& weights, const float* bias, const Row& r,
                   int64_t group, const float* made, float* y);

}  // namespace moka::devices::cpu
