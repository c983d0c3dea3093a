// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/winograd_blocking.h"

#include <cmath>
#include <span>
#include <utility>

#include "devices/cpu/common/conv_work.h"
#include "devices/cpu/isa.h"

namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::gemm;
using vector::Winograd;
using vector::WinogradAxis;
using vector::winograds;

/// Tiles per chunk: as many as fit half of the L2 cache. Weights that exceed the caches are read once per chunk, so
/// chunks are larger for such weights.
int64_t most_tiles(const WinogradBlocking& p) {
  constexpr int64_t kLargeChunk = 56;
  const int64_t rows = gemm().rows, floats = p.f->points() * (p.in_groups * p.block() + p.panel());
  const bool is_large = p.is_compressed || p.weights() * p.in * p.out > kLargeWeights;
  const int64_t least = is_large ? kLargeChunk : rows < 12 ? 2 * rows : rows;
  return std::max(least, l2_cache_bytes() / 8 / floats / rows * rows);
}

/// Input channels of a panel whose transformed weights fit part of the L2 cache, in almost equal parts.
int64_t channels_at_once(const WinogradBlocking& p) {
  constexpr int64_t kFits = 256 << 10, kEach = 8;
  const int64_t most = std::max(kEach, kFits / 4 / (p.weights() * p.panel()) / kEach * kEach);
  const int64_t parts = (p.in + most - 1) / most, each = (p.in + parts - 1) / parts;
  return (each + kEach - 1) / kEach * kEach;
}

/// Divides slices and the tiles of a slice. A chunk spans many slices, because it also transforms the slices that its
/// last windows reach into.
void divide_slices(WinogradBlocking& p, int64_t images, int64_t most) {
  constexpr int64_t kFewest = 4;  // tiles of a slice: adjacent tiles share transformed columns
  const int64_t plane = p.down * p.across, slices = p.w.out[0];
  const auto parts = [](int64_t n, int64_t each) { return (n + each - 1) / each; };
  p.slabs = parts(slices, std::clamp<int64_t>(most / std::min(kFewest, plane), 1, slices));
  p.spans = parts(plane, std::clamp<int64_t>(most / parts(slices, p.slabs), 1, plane));
  p.chunks = images * p.slabs * p.spans;
}

WinogradBlocking blocking_of(const Window& w, int64_t images, int64_t in, int64_t out, const Winograd& f, int threads,
                             bool compressed) {
  WinogradBlocking p{};
  const int64_t block = channel_block();
  p.w = w;
  p.f = &f;
  p.in = in;
  p.is_compressed = compressed;
  p.out = out;
  p.in_groups = (in + block - 1) / block;
  p.out_groups = (out + block - 1) / block;
  p.down = (w.out[1] + f.down.out - 1) / f.down.out;
  p.across = (w.out[2] + f.across.out - 1) / f.across.out;
  p.tiles = images * w.out[0] * p.down * p.across;
  p.at_once = compressed ? channels_at_once(p) : in;
  const int64_t most = most_tiles(p);
  if (p.summed() == 1)
    p.chunks = (p.tiles + most - 1) / most;
  else
    divide_slices(p, images, most);
  int64_t transformed = 0;
  for (int64_t i = 0; i < p.chunks; i++) {
    const Chunk c = p.chunk_of(i);
    p.chunk = std::max(p.chunk, c.tiles());
    transformed = std::max(transformed, c.tiles() + (p.summed() - 1) * c.width());
  }
  // One extra block: with a power of two, all points of a tile would compete for a few cache sets.
  p.in_step = transformed * p.in_groups * block + block;
  p.out_step = p.chunk * p.panel() + block;
  p.parts = threads == 1 ? 1 : std::clamp<int64_t>((2 * threads + p.chunks - 1) / p.chunks, 1, p.panels());
  return p;
}

/// The window of an image with its lines as slices.
Window lines_as_slices(const Window& w) {
  Window to = w;
  for (ir::Ints* v : {&to.in, &to.out, &to.kernel, &to.strides, &to.dilations, &to.pads_begin, &to.pads_end})
    std::swap((*v)[0], (*v)[1]);
  return to;
}

/// The window of a volume with its slices as lines, each with all pixels of a slice.
Window slices_as_lines(const Window& w) {
  Window to = lines_as_slices(w);
  to.in[2] *= std::exchange(to.in[0], 1);
  to.out[2] *= std::exchange(to.out[0], 1);
  return to;
}

bool fits(const WinogradAxis& a, const Window& w, int axis) {
  return a.taps == w.kernel[axis] && a.stride == w.strides[axis];
}

bool is_whole(const Window& w, int axis) {
  return w.kernel[axis] == 1 && w.strides[axis] == 1 && w.in[axis] == w.out[axis] && w.pads_begin[axis] == 0;
}

/// A window of three axes as one whose lines and columns have a transform.
std::optional<Window> view(const Window& w) {
  const std::span all(winograds().begin, static_cast<size_t>(winograds().count));
  for (const Winograd& f : all)
    if (fits(f.down, w, 1) && fits(f.across, w, 2)) return w;
  if (w.in[0] == 1 && is_whole(w, 0)) return lines_as_slices(w);
  if (is_whole(w, 1) && is_whole(w, 2)) return slices_as_lines(w);
  return std::nullopt;
}

}  // namespace

Chunk WinogradBlocking::chunk_of(int64_t i) const {
  if (summed() == 1) return {0, 1, tiles * i / chunks, tiles * (i + 1) / chunks};
  const int64_t plane = down * across, span = i % spans, slab = i / spans % slabs, image = i / spans / slabs;
  const int64_t first = w.out[0] * slab / slabs, last = w.out[0] * (slab + 1) / slabs;
  return {image * w.out[0] + first, last - first, plane * span / spans, plane * (span + 1) / spans};
}

double work(const WinogradBlocking& p) {
  const auto lanes = static_cast<double>(gemm().lanes), numbers = static_cast<double>(p.tiles * p.f->points()),
             in = static_cast<double>(p.in_groups * p.block()), out = static_cast<double>(p.out_groups * p.block());
  const auto summed = static_cast<double>(p.summed()),
             slab = static_cast<double>(p.w.out[0]) / static_cast<double>(std::max<int64_t>(p.slabs, 1));
  constexpr double kTransform = 8;  // of a weight, in each chunk
  const int64_t count = p.weights() * p.in * p.out;
  const double weights = p.is_compressed ? kTransform * static_cast<double>(p.chunks * count) : reading_work(count);
  return numbers * (summed * in * out + lanes * (in * (slab + summed - 1) / slab + 0.7 * out)) + weights;
}

std::optional<WinogradBlocking> best_blocking(const Window& window, int64_t images, int64_t in, int64_t out,
                                              const MatchCall& m, bool compressed) {
  constexpr int64_t kFewest = 12;
  const bool asked = m.asked;
  // What packing costs for each packed weight.
  const double pack = m.is_renewed ? 8.0 * static_cast<double>(gemm().lanes) : 0;
  if (!asked && images * window.out_count() < kFewest) return std::nullopt;
  double least = asked ? HUGE_VAL : direct_work(window, images, in, out);
  if (!asked && window.rank < 3)
    if (const auto narrow = narrow_work(window.as(2), images, in, out)) least = std::min(least, *narrow);
  least += pack * static_cast<double>(window.taps() * in * out);
  const std::optional<Window> w = view(window.as_3d());
  if (!w || (w->kernel[0] > 1 && w->strides[0] > 1)) return std::nullopt;
  std::optional<WinogradBlocking> best;
  for (const Winograd& f : std::span(winograds().begin, static_cast<size_t>(winograds().count))) {
    if (!fits(f.down, *w, 1) || !fits(f.across, *w, 2)) continue;
    const WinogradBlocking p = blocking_of(*w, images, in, out, f, m.threads, compressed);
    // The kernel also reads the weights themselves, which are kept for it.
    const double all = work(p) + pack * static_cast<double>((p.weights() + window.taps()) * in * out);
    if (all >= least) continue;
    best = p;
    least = all;
  }
  return best;
}

}  // namespace moka::devices::cpu
