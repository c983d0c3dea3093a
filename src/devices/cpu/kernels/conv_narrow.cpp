// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/conv_work.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/narrow.h"
#include "ops/common/window.h"

/// Convolutions with few output channels, or with few in each group. A block of channels would be mostly padding, so
/// vectors hold adjacent pixels of one channel instead.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::narrow;

constexpr int64_t kMostSummed = 192;  // products per partial sum, which bounds the rounding error

struct NarrowBlocking {
  Window w;
  bool blocked;             ///< the input's layout
  int64_t images, in, out;  ///< each group of each image counts as an image; in, out: its channels
  int64_t in_groups;        ///< blocks of input channels
  int64_t parts;            ///< divisions of the output channels; the channels of a part are summed at once
  int64_t bands;            ///< divisions of an image's output rows
  int64_t width, line;      ///< floats of an output and an input line in scratch: whole vectors, padding included

  int64_t block() const { return narrow().block; }
  int64_t depth(int64_t group) const { return std::min(block(), in - group * block()); }
  int64_t first_out(int64_t part) const { return out * part / parts; }
  /// Scratch holds a ring of the last input lines of each channel.
  int64_t ring() const { return w.extent(0); }
  int64_t slot(int64_t line) const { return (line % ring() + ring()) % ring(); }
  int64_t scratch() const { return in_groups * block() * ring() * line + out * width; }
};

/// Packs weights as [group][part][input channel][row][tap][output channel of the part].
void pack_weights(const NarrowBlocking& p, const float* w, float* to) {
  const int64_t taps = p.in * p.w.taps();
  for (int64_t group = 0; group < p.w.groups; group++, w += p.out * taps)
    for (int64_t part = 0; part < p.parts; part++)
      for (int64_t t = 0; t < taps; t++)
        for (int64_t o = p.first_out(part); o < p.first_out(part + 1); o++) *to++ = w[o * taps + t];
}

/// Copies input lines [first, last) of an image into the rings. Lines outside the image are zeros.
void take_lines(const NarrowBlocking& p, const float* x, int64_t first, int64_t last, float* lines) {
  const int64_t height = p.w.in[0], width = p.w.in[1], left = p.w.pads_begin[1], block = p.block();
  const int64_t skipped = std::max<int64_t>(0, -left),
                count = std::clamp<int64_t>(p.line - left, skipped, width) - skipped;
  for (int64_t i = first; i < last; i++) {
    const bool inside = i >= 0 && i < height && count > 0;
    const int64_t plane = p.ring() * p.line;
    float* to = lines + p.slot(i) * p.line;
    for (int64_t c = 0; c < p.in; c++) {
      std::fill_n(to + c * plane, inside ? left + skipped : p.line, 0.0f);
      if (inside) std::fill(to + c * plane + left + skipped + count, to + c * plane + p.line, 0.0f);
      if (inside && !p.blocked)
        std::copy_n(x + (c * height + i) * width + skipped, count, to + c * plane + left + skipped);
    }
    if (!inside || !p.blocked) continue;
    for (int64_t g = 0; g < p.in_groups; g++)
      narrow().split(x + ((g * height + i) * width + skipped) * block, count, to + g * block * plane + left + skipped,
                     plane);
  }
}

/// Adds the products of a row of outputs of one group of channels to `sums`, [outputs, width]. `first`: the line of the
/// input that the row begins at, in the rings `lines`. `weights`: those of the group.
void add_products(const NarrowBlocking& p, const float* weights, int64_t first, const float* lines, float* sums) {
  for (int64_t g = 0; g < p.in_groups; g++) {
    const float* some[16 * kMostNarrowHeight];
    int64_t n = 0;
    for (int64_t ch = g * p.block(); ch < g * p.block() + p.depth(g); ch++)
      for (int64_t k = 0; k < p.w.kernel[0]; k++)
        some[n++] = lines + (ch * p.ring() + p.slot(first + k * p.w.dilations[0])) * p.line;
    const int64_t some_lines = std::max<int64_t>(1, kMostSummed / p.w.kernel[1]);
    for (int64_t part = 0; part < p.parts; part++) {
      const int64_t first_out = p.first_out(part), outs = p.first_out(part + 1) - first_out;
      const float* w_group = weights + (first_out * p.in + g * p.block() * outs) * p.w.taps();
      for (int64_t i = 0; i < n; i += some_lines)
        narrow().add(some + i, std::min(some_lines, n - i), p.w.kernel[1], p.w.dilations[1],
                     w_group + i * p.w.kernel[1] * outs, outs, p.width, sums + first_out * p.width, p.width);
    }
  }
}

/// `images`: of one group of `in` to `out` channels each.
NarrowBlocking narrow_blocking_of(const Window& w, int64_t images, int64_t in, int64_t out, bool is_blocked,
                                  int threads) {
  NarrowBlocking p{};
  p.w = w;
  p.blocked = is_blocked;
  p.images = images;
  p.in = in;
  p.out = out;
  p.in_groups = (p.in + p.block() - 1) / p.block();
  p.parts = (p.out + narrow().most - 1) / narrow().most;
  const int64_t lanes = narrow().lanes;
  p.width = (w.out[1] + lanes - 1) / lanes * lanes;
  p.line = (p.width + w.extent(1) - 1 + lanes - 1) / lanes * lanes;
  constexpr int64_t kRows = 32;
  p.bands = std::max((w.out[0] + kRows - 1) / kRows,
                     std::min<int64_t>(threads == 1 || images >= 4 * threads ? 1 : 2 * threads, w.out[0]));
  return p;
}

void tell(const NarrowBlocking& p, kernel::Facts& facts) {
  facts.add("vector", narrow().lanes, " pixels")
      .add("output channels at once", std::min(p.out, narrow().most))
      .add("bands of rows", p.bands)
      .add("line", p.line, " numbers with padding");
}

Match match_narrow(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (window->rank > 2) return Match::no(cat(window->rank, " spatial dimensions"));
  const Window w = window->as(2);
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const int64_t in_group = x[1] / w.groups, out_group = y[1] / w.groups, images = x[0] * w.groups;
  const auto work = narrow_work(w, x[0], in_group, out_group);
  if (!work) return Match::no("many output channels, or a window with a stride or a large height");
  if (w.groups == 1 ? *work > direct_work(w, x[0], x[1], y[1])
                    : in_group % channel_block() == 0 && out_group % channel_block() == 0)
    return Match::no("whole blocks are faster");
  if (lies_in_blocks(*window, x[1], y[1])) return Match::no("groups inside a block");
  const NarrowBlocking p =
      narrow_blocking_of(w, images, in_group, out_group, w.groups == 1 && layout_of(m, "x") == blocked(), m.threads);
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int weight = m.call.arg_index("weight"), bias = m.call.arg_index("bias"), addend = m.call.arg_index("addend");
  KernelChoice c;
  c.kernel = "cpu.conv.narrow";
  c.in = in_layouts(m, "x", p.blocked ? blocked() : Layout{});
  c.thread_scratch = static_cast<size_t>(p.scratch()) * sizeof(float);
  c.tiles = p.images * p.bands;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 2 * *work, traffic(m));
  const auto weights = packed_before(c, m, weight, cat("narrow in ", w.groups), w.groups * p.out * p.in * p.w.taps(),
                                     [p](const float* value, float* to) { pack_weights(p, value, to); });
  c.facts = [p](kernel::Facts& facts) { tell(p, facts); };
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const float* packed = weights->data();
    const float *from = args.in[in].as<float>(), *biases = data_of(args, bias), *added = data_of(args, addend);
    float* all = args.out[0].as<float>();
    float* lines = args.own<float>();
    float* sums = lines + p.in_groups * p.block() * p.ring() * p.line;
    const int64_t channels = p.blocked ? p.in_groups * p.block() : p.in;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t image = t / p.bands, top = p.w.out[0] * (t % p.bands) / p.bands,
                    bottom = p.w.out[0] * (t % p.bands + 1) / p.bands;
      const int64_t first_of_group = image % p.w.groups * p.out;  // first output channel of the group
      const float* x = from + image * channels * p.w.in_count();
      int64_t taken = top * p.w.strides[0] - p.w.pads_begin[0];
      for (int64_t row = top; row < bottom; row++) {
        const int64_t first = row * p.w.strides[0] - p.w.pads_begin[0], last = first + p.w.extent(0);
        take_lines(p, x, std::max(taken, first), last, lines);
        taken = last;
        for (int64_t o = 0; o < p.out; o++)
          std::fill_n(sums + o * p.width, p.width, biases == nullptr ? 0.0f : biases[first_of_group + o]);
        add_products(p, packed + first_of_group * p.in * p.w.taps(), first, lines, sums);
        for (int64_t o = 0; o < p.out; o++) {
          const int64_t at = ((image * p.out + o) * p.w.out[0] + row) * p.w.out[1];
          std::copy_n(sums + o * p.width, p.w.out[1], all + at);
          if (added != nullptr)
            vector::loops().binary(vector::Binary::add, all + at, 1, added + at, 1, all + at, p.w.out[1]);
          apply_all(after, all + at, p.w.out[1]);
        }
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_narrow() {
  static const KernelDef defs[] = {{.name = "cpu.conv.narrow", .ops = {"conv"}, .match = match_narrow, .addend = true}};
  return {40, defs};
}

}  // namespace moka::devices::cpu
