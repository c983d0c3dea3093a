// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/conv_work.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gemm.h"
#include "ops/common/window.h"

/// Convolutions whose groups do not fill blocks of channels. The channels of a group are gathered next to each other
/// for each pixel, so that one row of the window is one row of a matrix product. The results are scattered back to
/// their blocks. No group reads channels of another, so infinities of one cannot reach the other.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::Gemm;

constexpr double kCopied = 6;  // cost of moving a number to or from a block, in multiply-adds

struct GroupBlocking {
  Window w;
  const Gemm* gemm;
  int64_t images, in, out;  ///< in, out: channels per group
  int64_t unit_groups;      ///< groups per unit: the fewest whose results fill whole blocks
  int64_t bands;            ///< divisions of the output rows

  int64_t units() const { return (w.groups + unit_groups - 1) / unit_groups; }
  int64_t line_depth() const { return w.kernel[1] * in; }
  int64_t padded() const { return (out + gemm->lanes - 1) / gemm->lanes * gemm->lanes; }
  int64_t panel_floats() const { return vector::packed_count(*gemm, line_depth(), out); }
  int64_t row(int64_t band) const { return w.out[0] * band / bands; }
  int64_t most_rows() const { return (w.out[0] + bands - 1) / bands; }
  /// Input lines and columns that `rows` output rows read, padding included.
  int64_t lines(int64_t rows) const { return (rows - 1) * w.strides[0] + w.extent(0); }
  int64_t columns() const { return (w.out[1] - 1) * w.strides[1] + w.kernel[1]; }
  int64_t image_floats() const { return (lines(most_rows()) * columns() * in + 15) / 16 * 16; }
  int64_t sum_floats() const { return (w.out[1] + 1) * padded(); }  ///< one output row and the bias
};

double work_of(const GroupBlocking& p) {
  const auto groups = static_cast<double>(p.images * p.w.groups);
  return groups * (static_cast<double>(p.w.out_count() * p.w.kernel[0] * p.line_depth() * p.padded()) * 1.1 +
                   kCopied * static_cast<double>(p.w.in_count() * p.in + p.w.out_count() * p.out));
}

/// Packs each row of the window of each group as panels.
void pack_weights(const GroupBlocking& p, const float* w, float* to) {
  const int64_t taps = p.w.taps(), across = p.w.kernel[1];
  std::vector<float> line(static_cast<size_t>(p.line_depth() * p.out));
  for (int64_t group = 0; group < p.w.groups; group++, w += p.out * p.in * taps)
    for (int64_t kh = 0; kh < p.w.kernel[0]; kh++, to += p.panel_floats()) {
      for (int64_t o = 0; o < p.out; o++)
        for (int64_t c = 0; c < p.in; c++)
          for (int64_t kw = 0; kw < across; kw++)
            line[static_cast<size_t>((kw * p.in + c) * p.out + o)] = w[(o * p.in + c) * taps + kh * across + kw];
      p.gemm->pack(line.data(), p.out, 1, p.line_depth(), p.out, to, nullptr);
    }
}

void copy_lanes(const float* from, float* to, int64_t n) {
  if (n == 16)
    std::memcpy(to, from, 16 * sizeof(float));
  else if (n == 8)
    std::memcpy(to, from, 8 * sizeof(float));
  else
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

/// Splits channels [first, first + channels) by blocks. Calls f(offset from first, block, lane in the block, count).
template <class F>
void each_segment(int64_t first, int64_t channels, F f) {
  const int64_t block = channel_block();
  for (int64_t c = 0, n; c < channels; c += n) {
    const int64_t lane = (first + c) % block;
    n = std::min(block - lane, channels - c);
    f(c, (first + c) / block, lane, n);
  }
}

/// Gathers the inputs of output rows [top, top + rows) of one group: [lines, columns, channels], with zeros outside the
/// image.
void gather(const GroupBlocking& p, const float* image, int64_t group, int64_t top, int64_t rows, float* to) {
  const int64_t block = channel_block(), height = p.w.in[0], width = p.w.in[1], columns = p.columns(),
                left = p.w.pads_begin[1], begin = std::clamp<int64_t>(-left, 0, width),
                count = std::clamp<int64_t>(columns - left, begin, width) - begin;
  for (int64_t i = 0; i < p.lines(rows); i++, to += columns * p.in) {
    const int64_t line = top * p.w.strides[0] - p.w.pads_begin[0] + i;
    if (line < 0 || line >= height || count == 0) {
      std::fill_n(to, columns * p.in, 0.0f);
      continue;
    }
    float* first = to + (left + begin) * p.in;
    std::fill(to, first, 0.0f);
    std::fill(first + count * p.in, to + columns * p.in, 0.0f);
    each_segment(group * p.in, p.in, [&](int64_t c, int64_t which, int64_t lane, int64_t n) {
      const float* from = image + ((which * height + line) * width + begin) * block + lane;
      for (int64_t j = 0; j < count; j++) copy_lanes(from + j * block, first + j * p.in + c, n);
    });
  }
}

GroupBlocking group_blocking_of(const Window& w, const ir::Shape& x, const ir::Shape& y, int threads) {
  const int64_t block = channel_block();
  GroupBlocking p{};
  p.w = w;
  p.images = x[0];
  p.in = x[1] / w.groups;
  p.out = y[1] / w.groups;
  p.gemm = p.out <= vector::gemm().panel ? &vector::gemm() : &vector::gemm_for(p.out);
  p.unit_groups = std::min(w.groups, std::lcm(p.out, block) / p.out);
  p.bands = std::min<int64_t>(w.out[0], threads == 1 ? 1 : std::max<int64_t>(1, 4 * threads / (p.images * p.units())));
  return p;
}

/// One row of a group's output in `image`, from its gathered lines. `added`: an image to add, or nullptr. `sums` has
/// room for the row.
void compute_row(const GroupBlocking& p, const float* lines, const float* panels, const float* bias, int64_t group,
                 int64_t row, const float* added, std::span<const Activation> after, float* sums, float* image) {
  const Window& w = p.w;
  const int64_t block = channel_block();
  for (int64_t kh = 0; kh < w.kernel[0]; kh++)
    p.gemm->multiply(lines + kh * w.dilations[0] * p.columns() * p.in, w.strides[1] * p.in,
                     panels + kh * p.panel_floats(), w.out[1], p.padded(), p.line_depth(), sums, p.padded(),
                     kh == 0 ? bias : nullptr, kh > 0);
  const auto each_place = [&](auto f) {
    each_segment(group * p.out, p.out, [&](int64_t o, int64_t which, int64_t lane, int64_t n) {
      const int64_t at = ((which * w.out[0] + row) * w.out[1]) * block + lane;
      for (int64_t j = 0; j < w.out[1]; j++) f(sums + j * p.padded() + o, at + j * block, n);
    });
  };
  if (added != nullptr)
    each_place([&](float* sum, int64_t at, int64_t n) {
      for (int64_t i = 0; i < n; i++) sum[i] += added[at + i];
    });
  apply_all(after, sums, w.out[1] * p.padded());
  each_place([&](const float* sum, int64_t at, int64_t n) { copy_lanes(sum, image + at, n); });
}

void tell(const GroupBlocking& p, kernel::Facts& facts) {
  facts.add("groups of a unit", p.unit_groups, " of ", p.w.groups)
      .add("channels of a group", p.in, " in, ", p.out, " out")
      .add("panel", p.gemm->panel, " output channels")
      .add("bands of rows", p.bands);
}

Match match_groups(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (window->rank > 2) return Match::no(cat(window->rank, " spatial dimensions"));
  const Window w = window->as(2);
  if (w.groups == 1) return Match::no("one group");
  if (w.dilations[1] != 1) return Match::no("dilation along lines");
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const int64_t block = channel_block();
  const GroupBlocking p = group_blocking_of(w, x, y, m.threads);
  if (!m.asked) {
    if (p.in % block == 0 && p.out % block == 0) return Match::no("whole blocks are faster");
    if (lies_in_blocks(*window, x[1], y[1])) return Match::no("groups inside a block");
    const auto narrow = narrow_work(w, x[0], p.in, p.out);
    if (p.in < block / 2 || (narrow && *narrow < work_of(p))) return Match::no("few channels of a group");
  }

  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int weight = m.call.arg_index("weight"), bias = m.call.arg_index("bias"), addend = m.call.arg_index("addend");
  KernelChoice c;
  c.kernel = "cpu.conv.groups";
  c.in = in_layouts(m, "x", blocked());
  if (addend >= 0) c.in[static_cast<size_t>(addend)] = blocked();
  c.out = {blocked()};
  c.thread_scratch = static_cast<size_t>(p.image_floats() + p.sum_floats()) * sizeof(float);
  c.tiles = p.images * p.units() * p.bands;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 2 * work_of(p), traffic(m));
  const auto weights = packed_before(
      c, m, weight, cat("lines of ", w.groups, " groups, panels of ", p.gemm->panel, " in ", p.gemm->lanes),
      w.groups * w.kernel[0] * p.panel_floats(), [p](const float* value, float* to) { pack_weights(p, value, to); });
  const int64_t in_image = storage_count(x, blocked()) / p.images, out_image = storage_count(y, blocked()) / p.images;
  c.facts = [p](kernel::Facts& facts) { tell(p, facts); };
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const Window& w = p.w;
    float* const lines = args.own<float>();
    float* const sums = lines + p.image_floats();
    float* const start = sums + w.out[1] * p.padded();
    const float *biases = data_of(args, bias), *added = data_of(args, addend);
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t band = t % p.bands, unit = t / p.bands % p.units(), image = t / p.bands / p.units();
      const int64_t top = p.row(band), bottom = p.row(band + 1);
      const float* from = args.in[in].as<float>() + image * in_image;
      float* const to = args.out[0].as<float>() + image * out_image;
      const float* const more = added == nullptr ? nullptr : added + image * out_image;
      for (int64_t group = unit * p.unit_groups; group < std::min(w.groups, (unit + 1) * p.unit_groups); group++) {
        gather(p, from, group, top, bottom - top, lines);
        std::fill_n(start, p.padded(), 0.0f);
        if (biases != nullptr) std::copy_n(biases + group * p.out, p.out, start);
        const float* panels = weights->data() + group * w.kernel[0] * p.panel_floats();
        for (int64_t row = top; row < bottom; row++)
          compute_row(p, lines + (row - top) * w.strides[0] * p.columns() * p.in, panels, start, group, row, more,
                      after, sums, to);
      }
      if (unit + 1 == p.units() && has_padding(y, blocked()))
        for (int64_t row = top; row < bottom; row++) {
          const int64_t at = ((y[1] / block * w.out[0] + row) * w.out[1]) * block;
          clear_padding(y, blocked(), args.out[0].as<float>(), image * out_image + at,
                        image * out_image + at + w.out[1] * block);
        }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_groups() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.groups", .ops = {"conv"}, .match = match_groups, .addend = true, .measured = true}};
  return {30, defs};
}

}  // namespace moka::devices::cpu
