// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devices/cpu/common/common.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/loops.h"
#include "devices/cpu/vector/outer.h"
#include "ops/common/window.h"

/// Gradients of the weights of convolutions: sums over pixels of outer products.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::Outer;
using vector::outer;

constexpr int64_t kOuterPixels = 256;      // pixels whose channels stay in the L2 cache
constexpr int64_t kOuterSums = 24 * 1024;  // most floats of sums of a part
constexpr int64_t kLeastOuterRows = 8;     // channels per group for which x is read in blocks

/// Columns of the result's gradient that read inside the image with the taps [tap, tap + taps) of a row of the window.
struct Segment {
  int64_t first, last, tap, taps;
};

/// The segments of the taps [tap, end).
void add_segments(const Window& w, int64_t tap, int64_t end, std::vector<Segment>& to) {
  for (int64_t column = 0; column < w.out[2]; column++) {
    int64_t first = end, last = tap;
    for (int64_t k = tap; k < end; k++) {
      const ops::TapReach reach = ops::tap_reach(w, 2, k);
      if (column < reach.first || column >= reach.last) continue;
      first = std::min(first, k);
      last = k + 1;
    }
    if (first >= last) continue;
    if (!to.empty() && to.back().last == column && to.back().tap == first && to.back().taps == last - first)
      to.back().last++;
    else
      to.push_back({column, column + 1, first, last - first});
  }
}

/// Sums are made part by part: of some blocks of dy's channels and some channels of x, all within one group. A part
/// adds the pixels of one chunk after the other, so that sums do not depend on how they are divided into parts.
struct WeightsBlocking {
  Window w;                       ///< of rank 3
  int64_t images, in, out;        ///< channels per group
  bool x_blocked, y_blocked;      ///< otherwise row-major
  int64_t in_groups, out_groups;  ///< blocks of channels per group
  int64_t in_parts = 1, out_parts = 1;
  int64_t pieces, pieces_at_once;  ///< of rows of dy: of all images, and of a chunk
  int64_t pieces_of_row;
  std::vector<Segment> segments;

  int64_t parts() const { return w.groups * out_parts * in_parts; }
  int64_t first_in(int64_t part) const { return in_groups * part / in_parts; }
  int64_t first_out(int64_t part) const { return out_groups * part / out_parts; }
  int64_t most_out() const { return (out_groups + out_parts - 1) / out_parts; }
  int64_t channels_of(int64_t part) const {
    if (!x_blocked) return in;
    return std::min(in, first_in(part + 1) * outer().block) - first_in(part) * outer().block;
  }
  int64_t most_channels() const {
    return x_blocked ? std::min(in, (in_groups + in_parts - 1) / in_parts * outer().block) : in;
  }
  int64_t sums() const { return most_out() * most_channels() * w.taps() * outer().block; }
  int64_t pixels_at_once() const { return pieces_at_once * ((w.out[2] + pieces_of_row - 1) / pieces_of_row); }
  /// Pixels of dy with the channels of a part, if it is not blocked.
  int64_t gathered() const { return y_blocked ? 0 : pixels_at_once() * most_out() * outer().block; }
  int64_t scratch() const {
    return (sums() + gathered()) * static_cast<int64_t>(sizeof(float)) +
           pieces_at_once * static_cast<int64_t>(sizeof(Outer::Run));
  }
};

void divide(WeightsBlocking& p, int threads) {
  const auto raise = [](int64_t& parts, int64_t most) { parts = std::min(2 * parts, most); };
  const int64_t of_tile = p.out_groups < outer().blocks ? p.out_groups : outer().blocks;
  while (p.sums() > kOuterSums && p.most_out() > of_tile) raise(p.out_parts, p.out_groups);
  while (p.sums() > kOuterSums && p.x_blocked && p.in_parts < p.in_groups) raise(p.in_parts, p.in_groups);
  const int64_t wanted = threads > 1 ? 4 * threads : 1;
  while (p.parts() < wanted && p.x_blocked && p.in_parts < p.in_groups) raise(p.in_parts, p.in_groups);
  while (p.parts() < wanted && p.out_parts < p.out_groups) raise(p.out_parts, p.out_groups);
}

WeightsBlocking weights_blocking_of(const Window& w, int64_t images, int64_t x, int64_t y, int threads) {
  const int64_t block = outer().block;
  WeightsBlocking p{.w = w, .images = images, .in = x / w.groups, .out = y / w.groups};
  p.y_blocked = w.groups == 1 || p.out % block == 0;
  p.x_blocked = p.in >= kLeastOuterRows && (w.groups == 1 || (p.in % block == 0 && p.y_blocked));
  p.in_groups = (p.in + block - 1) / block;
  p.out_groups = (p.out + block - 1) / block;
  p.pieces_of_row = (w.out[2] + kOuterPixels - 1) / kOuterPixels;
  p.pieces = images * w.out[0] * w.out[1] * p.pieces_of_row;
  p.pieces_at_once = std::clamp<int64_t>(kOuterPixels * p.pieces_of_row / w.out[2], 1, p.pieces);
  const int64_t adjacent = p.x_blocked || w.dilations[2] != 1 ? 1 : outer().rows;
  const int64_t tiles = (w.kernel[2] + adjacent - 1) / adjacent;
  for (int64_t i = 0; i < tiles; i++)
    add_segments(w, w.kernel[2] * i / tiles, w.kernel[2] * (i + 1) / tiles, p.segments);
  divide(p, threads);
  return p;
}

/// Computes the parts of one gradient.
struct WeightsRun {
  WeightsBlocking p;
  size_t x, dy;

  void operator()(const KernelArgs& args, int64_t part) const {
    const int64_t in_part = part % p.in_parts, out_part = part / p.in_parts % p.out_parts,
                  group = part / p.in_parts / p.out_parts;
    const int64_t block = outer().block, taps = p.w.taps(), channels = p.channels_of(in_part),
                  first_in = p.first_in(in_part) * block, first_out = p.first_out(out_part) * block,
                  blocks = p.first_out(out_part + 1) - p.first_out(out_part);
    auto* const sums = args.own<float>();
    std::fill_n(sums, blocks * channels * taps * block, 0.0f);
    Outer::Call call{};
    call.x_step = (p.x_blocked ? block : 1) * p.w.strides[2];
    call.y_step = p.y_blocked ? block : p.most_out() * block;
    call.y_block = p.y_blocked ? p.w.out_count() * block : block;
    call.sums_block = channels * taps * block;
    const float* from = args.in[x].as<float>() +
                        (p.x_blocked ? (group * p.in_groups * block + first_in) : group * p.in) * p.w.in_count();
    const float* by =
        args.in[dy].as<float>() +
        (p.y_blocked ? group * p.out_groups * block + first_out : group * p.out + first_out) * p.w.out_count();
    for (int64_t piece = 0; piece < p.pieces; piece += p.pieces_at_once) {
      const int64_t end = std::min(p.pieces, piece + p.pieces_at_once);
      if (!p.y_blocked) gather(by, piece, end, std::min(blocks * block, p.out - first_out), sums + p.sums());
      for (int64_t d = 0; d < p.w.kernel[0]; d++)
        for (int64_t h = 0; h < p.w.kernel[1]; h++)
          for (const Segment& s : p.segments) {
            auto* const runs = reinterpret_cast<Outer::Run*>(sums + p.sums() + p.gathered());
            call.runs = runs;
            call.run_count = find_runs(d, h, s, piece, end, runs);
            if (call.run_count == 0) continue;
            call.x = from;
            call.y = p.y_blocked ? by : sums + p.sums();
            call.sums = sums + ((d * p.w.kernel[1] + h) * p.w.kernel[2] + s.tap) * block;
            add(call, s, channels, blocks);
          }
    }
    const int64_t used = std::min(blocks * block, p.out - first_out);
    float* to = args.out[0].as<float>() + ((group * p.out + first_out) * p.in + first_in) * taps;
    for (int64_t k = 0; k < used; k += block)
      vector::loops().transpose(sums + k * channels * taps, block, channels * taps, std::min(block, used - k),
                                to + k * p.in * taps, p.in * taps);
  }

 private:
  /// Calls f(number of the image, row of dy from the first slice on, columns [first, last)) for pieces [piece, end).
  template <class F>
  void each_piece(int64_t piece, int64_t end, F f) const {
    const int64_t rows = p.w.out[0] * p.w.out[1];
    for (; piece < end; piece++) {
      const int64_t of_row = piece % p.pieces_of_row, row = piece / p.pieces_of_row;
      f(row / rows, row % rows, p.w.out[2] * of_row / p.pieces_of_row, p.w.out[2] * (of_row + 1) / p.pieces_of_row);
    }
  }

  /// Copies the channels of dy side by side.
  void gather(const float* from, int64_t piece, int64_t end, int64_t channels, float* to) const {
    const int64_t plane = p.w.out_count(), step = p.most_out() * outer().block;
    each_piece(piece, end, [&](int64_t image, int64_t row, int64_t first, int64_t last) {
      vector::loops().transpose(from + image * p.out * p.w.groups * plane + row * p.w.out[2] + first, plane, channels,
                                last - first, to, step);
      for (int64_t i = first; i < last; i++, to += step) std::fill(to + channels, to + step, 0.0f);
    });
  }

  /// The pixels of pieces [piece, end) that tap (d, h, ...) of a segment reads.
  int64_t find_runs(int64_t d, int64_t h, const Segment& s, int64_t piece, int64_t end, Outer::Run* runs) const {
    const Window& w = p.w;
    const ops::TapReach deep = ops::tap_reach(w, 0, d), down = ops::tap_reach(w, 1, h);
    const int64_t block = outer().block, x_unit = p.x_blocked ? block : 1,
                  y_unit = p.y_blocked ? block : p.most_out() * block;
    const int64_t x_image = (p.x_blocked ? w.groups * p.in_groups * block : w.groups * p.in) * w.in_count();
    const int64_t y_image = w.groups * p.out_groups * block * w.out_count();
    const int64_t base = s.tap * w.dilations[2] - w.pads_begin[2];
    int64_t count = 0, gathered = 0;
    each_piece(piece, end, [&](int64_t image, int64_t row, int64_t first, int64_t last) {
      const int64_t i = row / w.out[1], j = row % w.out[1], begin = std::max(first, s.first),
                    stop = std::min(last, s.last);
      const int64_t at = gathered - first;
      gathered += last - first;
      if (begin >= stop || i < deep.first || i >= deep.last || j < down.first || j >= down.last) return;
      const int64_t line = (i * w.strides[0] + deep.base) * w.in[1] + j * w.strides[1] + down.base;
      const Outer::Run run{image * x_image + (line * w.in[2] + begin * w.strides[2] + base) * x_unit,
                           p.y_blocked ? image * y_image + (row * w.out[2] + begin) * y_unit : (at + begin) * y_unit,
                           stop - begin};
      if (count > 0) {
        Outer::Run& before = runs[count - 1];
        if (before.x + before.count * x_unit * w.strides[2] == run.x && before.y + before.count * y_unit == run.y) {
          before.count += run.count;
          return;
        }
      }
      runs[count++] = run;
    });
    return count;
  }

  /// Adds the pixels to the sums of a tap, or of the adjacent taps of a segment.
  void add(Outer::Call& call, const Segment& s, int64_t channels, int64_t blocks) const {
    const int64_t block = outer().block, taps = p.w.taps(), tiles = (blocks + outer().blocks - 1) / outer().blocks;
    const float *x = call.x, *y = call.y;
    float* const sums = call.sums;
    for (int64_t t = 0, b = 0; t < tiles; t++, b += call.blocks) {
      call.blocks = blocks * (t + 1) / tiles - b;
      call.y = y + b * call.y_block;
      for (int64_t c = 0; c < channels; c += call.rows) {
        call.rows = p.x_blocked ? std::min(outer().rows, channels - c) : 1;
        call.sums = sums + b * call.sums_block + c * taps * block;
        call.x = x + (p.x_blocked ? c / block * p.w.in_count() * block + c % block : c * p.w.in_count());
        call.sums_row = taps * block;
        if (p.x_blocked) {
          outer().add(call);
          continue;
        }
        call.rows = s.taps;
        call.sums_row = block;
        outer().add(call);
        call.rows = 1;
      }
    }
  }
};

Match match_weights(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x", "dy"}); !why.empty()) return Match::no(why);
  auto window = ops::weights_gradient_window(given.call);
  if (!window.ok()) return Match::no("an unknown window");
  const ir::Shape &x = given.call.shape("x"), &dy = given.call.shape("dy");
  const Window w = window->as_3d();
  const double flops = 2.0 * static_cast<double>(dy.count() * (x[1] / w.groups) * w.taps());
  const MatchCall m = with_threads_for(given, flops);
  WeightsRun run{weights_blocking_of(w, x[0], x[1], dy[1], m.threads), static_cast<size_t>(m.call.arg_index("x")),
                 static_cast<size_t>(m.call.arg_index("dy"))};
  KernelChoice c;
  c.kernel = "cpu.conv.weights";
  c.in.resize(m.call.all_args().size());
  if (run.p.x_blocked) c.in[run.x] = blocked();
  if (run.p.y_blocked) c.in[run.dy] = blocked();
  c.tiles = run.p.parts();
  c.thread_scratch = static_cast<size_t>(run.p.scratch());
  c.cost = cost_of(m, flops, traffic(m));
  c.run = [run = std::move(run)](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) run(args, t);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_weights() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.weights", .ops = {"moka_conv_weights_gradient"}, .match = match_weights}};
  return {100, defs};
}

}  // namespace moka::devices::cpu
