// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/panel_weights.h"
#include "devices/cpu/vector/dense.h"
#include "ops/common/window.h"

/// Convolutions with any window between blocked channels, as vector::Dense computes them. A tile is a run of output
/// pixels, which may span rows. A table says for each tap and pixel where to read, so strides, dilation, padding and
/// the number of axes change only the table.
namespace moka::devices::cpu {

constexpr int64_t kMostDensePanel = 48;

struct DenseBlocking {
  ops::Window w;                  ///< of rank 3
  int64_t images, in, out;        ///< in, out: channels per group
  int64_t in_groups, out_groups;  ///< blocks of channels per group
  int64_t chunks, parts;          ///< divisions of an image's pixels and of the panels
  int64_t deep;                   ///< blocks of input channels whose weights are read before the next ones
  int64_t unit, in_step;          ///< floats of x from pixel to pixel, and from block to block of channels

  int64_t pixels() const { return w.out_count(); }
  int64_t taps() const { return w.taps(); }
  int64_t in_plane() const { return w.in_count() * unit; }
  int64_t first_pixel(int64_t chunk) const { return pixels() * chunk / chunks; }
  int64_t most_pixels() const { return (pixels() + chunks - 1) / chunks; }

  /// Vectors of output channels of a group. A panel has two of them, and the first panel three if their number is odd.
  int64_t vectors() const { return out_groups * vector::dense().block / vector::dense().lanes; }
  int64_t panels_of_group() const { return std::max<int64_t>(1, vectors() / 2); }
  int64_t panels() const { return w.groups * panels_of_group(); }
  int64_t first_panel(int64_t part) const { return panels() * part / parts; }
  /// The first channel of a panel of a group.
  int64_t column(int64_t panel) const { return panel == 0 ? 0 : (2 * panel + vectors() % 2) * vector::dense().lanes; }
  int64_t width(int64_t panel) const {
    return (panel + 1 == panels_of_group() ? vectors() * vector::dense().lanes : column(panel + 1)) - column(panel);
  }
  /// The channels of a panel that are not padding.
  int64_t used(int64_t panel) const { return std::min(width(panel), out - column(panel)); }
  int64_t weights_of_group() const { return vectors() * vector::dense().lanes * in * taps(); }
  int64_t weights() const { return w.groups * weights_of_group(); }
  /// The most weights that are read before the next ones.
  int64_t weights_at_once() const { return std::min(in, deep * vector::dense().block) * taps() * kMostDensePanel; }

  /// Bytes of the table of places.
  int64_t table() const { return (most_pixels() * taps() + taps() + most_pixels() + 1) * 4; }
};

/// The blocking of a window on x and y channels, which still lacks chunks, parts and deep.
DenseBlocking dense_blocking_of(const ops::Window& w, int64_t images, int64_t x, int64_t y);
/// The same for a window inside a row-major image of `channels` channels: the columns of the window are the channels,
/// and the channels the slices. Needs adjacent columns, one group and no padding.
DenseBlocking dense_blocking_of_rows(const ops::Window& w, int64_t images, int64_t channels, int64_t y);
/// Why sizes exceed the tables; empty: they do not.
std::string too_large_for_dense(const DenseBlocking& p);
/// Divides the pixels so that what they read stays in the L2 cache while panels pass, unless reading the weights again
/// for each division costs more. Chooses `deep`, too.
void divide_dense(DenseBlocking& p, int threads);

/// What the taps of some output pixels read: offsets in a block of input channels, negative in the padding.
struct DensePlaces {
  DensePlaces(const DenseBlocking& p, std::byte* table)
      : at(reinterpret_cast<int32_t*>(table)), steps(at + p.most_pixels() * p.taps()), edges(steps + p.taps()) {}
  /// Fills the table for `count` output pixels.
  void find(const DenseBlocking& p, int64_t first, int64_t count) const;

  int32_t* at;     ///< [tap][pixel]
  int32_t* steps;  ///< from the first tap to each tap
  int32_t* edges;  ///< for each pixel and the end, how many pixels before it have taps on padding
};

/// Packs rows [channel][in][taps] of a panel as [block of input channels][tap][channel][width].
void pack_dense_panel(const DenseBlocking& p, int64_t panel, const float* rows, float* to);

/// One panel of a group for pixels whose places are in a table.
struct DenseTask {
  const DenseBlocking& p;
  const DensePlaces& places;
  const PanelWeights& weights;
  const float* x;       ///< the group's first block of input channels
  int64_t of_group;     ///< the panel's number
  int64_t weight;       ///< of the panel's first element in `weights`
  float* room;          ///< weights.room(p.weights_at_once()) floats
  const float* bias;    ///< width(of_group) values
  const float* limits;  ///< as in vector::Dense
  float* y;
  int64_t y_step;

  /// Computes `pixels` pixels, `piece` at a time when the last input channels are added, and calls
  /// finish(first, count, y) behind each piece. With `reuse`, all pieces are written to y unless there are many input
  /// channels.
  template <class Finish>
  void run(int64_t pixels, int64_t piece, bool reuse, Finish finish) const {
    const int64_t block = vector::dense().block;
    vector::Dense::Call call{};
    for (int64_t deep = 0; deep < p.in_groups; deep += p.deep) {
      const bool last = deep + p.deep >= p.in_groups;
      prepare(call, deep, last);
      for (int64_t done = 0; done < pixels; done += call.pixels) {
        call.pixels = last ? std::min(pixels - done, piece) : pixels;
        call.places = places.at + done;
        call.edges = places.edges + done;
        call.y = reuse && p.deep >= p.in_groups ? y : y + done * block;
        vector::dense().multiply(call);
        call.halves = nullptr;
        if (last) finish(done, call.pixels, call.y);
      }
    }
  }
  /// Computes pixel `i` in y and skips its taps on padding, whose products with weights that are not finite are NaN.
  void run_inside(int64_t i) const;

 private:
  /// Everything that does not depend on the pixels.
  void prepare(vector::Dense::Call& call, int64_t deep, bool last) const;
};

}  // namespace moka::devices::cpu
