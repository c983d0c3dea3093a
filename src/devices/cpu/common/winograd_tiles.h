#pragma once

#include <algorithm>
#include <optional>

#include "devices/cpu/common/common.h"
#include "devices/cpu/common/stored_value.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/cpu/vector/winograd.h"
#include "ops/common/window.h"

namespace moka::devices::cpu {

struct WinogradBlocking {
  ops::Window w;
  const vector::Winograd* f;
  int64_t in, out;                ///< channels
  int64_t in_groups, out_groups;  ///< blocks of channels
  int64_t summed;                 ///< rows of the window that are not transformed: their products are summed
  int64_t down, across, tiles;    ///< tiles along the axes of an image; all tiles
  int64_t chunks, parts;          ///< divisions of the tiles and of the output channels
  int64_t in_step, out_step;      ///< floats from point to point in a chunk's transformed tiles and in their products

  int64_t panel() const { return vector::gemm().panel; }
  int64_t block() const { return vector::winograds().block; }
  int64_t panels() const { return (out_groups * block() + panel() - 1) / panel(); }
  int64_t width(int64_t p) const { return std::min(panel(), out_groups * block() - p * panel()); }
  int64_t first(int64_t part) const { return panels() * part / parts; }
  int64_t scratch() const { return f->points() * (in_step + out_step); }
  /// Transformed weights per pair of an input and an output channel.
  int64_t weights() const { return summed * f->weights(); }
  /// Offset into the transformed weights: [panel of vector/gemm.h][summed row][weight].
  int64_t weight_at(int64_t p, int64_t line, int64_t weight) const {
    return p * panel() * in * weights() + (line * f->weights() + weight) * in * width(p);
  }
};

/// Adjacent tiles in a line of tiles of an image.
struct Row {
  int64_t image, y, x, count;
  int64_t at;  ///< index of the first tile in its chunk
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

/// Corrects one block of channels of adjacent tiles. The transforms have spread an infinity or a NaN of the input, or
/// an overflow, over whole tiles.
void correct_tiles(const WinogradBlocking& p, const float* x, const Taps& weights, const float* bias, const Row& r,
                   int64_t group, float* y);

}  // namespace moka::devices::cpu
