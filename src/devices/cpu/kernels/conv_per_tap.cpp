// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/stored_value.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gemm.h"
#include "ops/common/window.h"

/// Dilated convolutions as one matrix product (GEMM) per tap of the window. Each product covers only the pixels for
/// which the tap is inside the image, so no time goes into multiplying padding. The same products run any convolution
/// with weights that stay as the file stores them and are expanded for each panel.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::gemm;

/// The output positions [first, last) along one axis for which a tap is inside the input. Position `first` reads
/// `from`.
struct Reach {
  int64_t first, last, from;
};

struct PerTapBlocking {
  Window w;
  int64_t images, in, out, in_groups, out_groups;
  int64_t rows, chunks;  ///< output rows per chunk; chunks per image
  int64_t at_once;       ///< blocks of input channels that are summed over all taps before the next blocks
  std::vector<Reach> reach[2];

  int64_t taps() const { return w.kernel[0] * w.kernel[1]; }
  int64_t panels() const { return (out + gemm().panel - 1) / gemm().panel; }
  int64_t width(int64_t panel) const { return std::min(gemm().panel, padded() - panel * gemm().panel); }
  /// Channels of `groups` blocks from `group` on.
  int64_t depth(int64_t group, int64_t groups) const {
    return std::min(groups * channel_block(), in - group * channel_block());
  }
  int64_t padded() const { return out_groups * channel_block(); }
  /// Offset into the packed weights: [panel][tap][block of input channels].
  int64_t weight_at(int64_t panel, int64_t tap, int64_t group) const {
    return panel * gemm().panel * taps() * in + (tap * in + group * channel_block()) * width(panel);
  }
};

std::vector<Reach> reach_of(const Window& w, int axis) {
  std::vector<Reach> all;
  const int64_t s = w.strides[axis], in = w.in[axis], out = w.out[axis];
  for (int64_t k = 0; k < w.kernel[axis]; k++) {
    const int64_t shift = k * w.dilations[axis] - w.pads_begin[axis];
    const int64_t first = std::clamp<int64_t>(shift >= 0 ? 0 : (-shift + s - 1) / s, 0, out);
    const int64_t last = shift >= in ? first : std::clamp<int64_t>((in - 1 - shift) / s + 1, first, out);
    all.push_back({first, last, first * s + shift});
  }
  return all;
}

/// The share of the products that do not read padding.
double inside(const PerTapBlocking& p) {
  double share = 1;
  for (int axis = 0; axis < 2; axis++) {
    int64_t reached = 0;
    for (const Reach& r : p.reach[axis]) reached += r.last - r.first;
    share *= static_cast<double>(reached) / static_cast<double>(p.w.kernel[axis] * p.w.out[axis]);
  }
  return share;
}

void pack_weights(const PerTapBlocking& p, const float* w, float* to) {
  const int64_t taps = p.taps(), block = channel_block();
  for (int64_t panel = 0; panel < p.panels(); panel++) {
    const int64_t first = panel * gemm().panel, width = p.width(panel), columns = std::min(width, p.out - first);
    // all taps of a block before the next block, in the order of w
    for (int64_t group = 0; group < p.in_groups; group++)
      for (int64_t tap = 0; tap < taps; tap++) {
        float* row = to + p.weight_at(panel, tap, group);
        for (int64_t c = group * block; c < std::min(p.in, (group + 1) * block); c++, row += width) {
          const float* from = w + (first * p.in + c) * taps + tap;
          for (int64_t o = 0; o < columns; o++) row[o] = from[o * p.in * taps];
          std::fill(row + columns, row + width, 0.0f);
        }
      }
  }
}

/// Expands the weights from `groups` blocks of input channels to a panel: [tap, channel, panel width]. `lines` has room
/// for a block of channels squared, for each tap.
void expand_weights(const PerTapBlocking& p, const kernel::StoredConstant& stored, int64_t panel, int64_t group,
                    int64_t groups, float* lines, float* to) {
  const int64_t taps = p.taps(), block = channel_block(), width = p.width(panel), line = block * taps;
  const int64_t depth = p.depth(group, groups);
  for (int64_t column = 0; column < width; column += block)
    for (int64_t c = 0; c < depth; c += block) {
      const int64_t some = std::min(block, depth - c);
      for (int64_t o = 0; o < block; o++) {
        const int64_t out = panel * gemm().panel + column + o;
        if (out < p.out)
          stored_values(stored, (out * p.in + group * block + c) * taps, some * taps, lines + o * line);
        else
          std::fill_n(lines + o * line, some * taps, 0.0f);
      }
      for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t k = 0; k < some; k++)
          for (int64_t o = 0; o < block; o++)
            to[(tap * depth + c + k) * width + column + o] = lines[o * line + k * taps + tap];
    }
}

/// As many as fit part of the L2 cache.
int64_t groups_at_once(const PerTapBlocking& p, bool expands) {
  constexpr int64_t kFits = 384 << 10;
  const int64_t group = channel_block() * static_cast<int64_t>(sizeof(float));
  int64_t bytes = p.w.in[0] * p.w.in[1] * group;
  if (expands) bytes = std::max(bytes, p.taps() * gemm().panel * group);
  return std::clamp<int64_t>(kFits / bytes, 1, p.in_groups);
}

/// Adds the products of `groups` blocks of input channels to one panel's sums for output rows [top, bottom) of an
/// image: [rows, output width, panel width]. `weights` are those of the first block, `tap_step` apart.
void multiply(const PerTapBlocking& p, const float* x, const float* weights, int64_t tap_step, int64_t panel,
              int64_t top, int64_t bottom, int64_t group, int64_t groups, float* sums) {
  const Window& w = p.w;
  const int64_t block = channel_block(), width = p.width(panel), plane = w.in[0] * w.in[1] * block;
  const int64_t depth = p.depth(group, groups);
  for (int64_t kh = 0; kh < w.kernel[0]; kh++) {
    const Reach& down = p.reach[0][static_cast<size_t>(kh)];
    const int64_t from = std::max(top, down.first), to = std::min(bottom, down.last);
    for (int64_t kw = 0; kw < w.kernel[1] && from < to; kw++) {
      const Reach& across = p.reach[1][static_cast<size_t>(kw)];
      if (across.first == across.last) continue;
      for (int64_t row = from; row < to; row++) {
        const int64_t line = down.from + (row - down.first) * w.strides[0];
        gemm().multiply_parts(x + group * plane + (line * w.in[1] + across.from) * block, w.strides[1] * block, block,
                              plane, weights + (kh * w.kernel[1] + kw) * tap_step, across.last - across.first, width,
                              depth, sums + ((row - top) * w.out[1] + across.first) * width, width);
      }
    }
  }
}

PerTapBlocking per_tap_blocking_of(const Window& w, const ir::Shape& x, const ir::Shape& y) {
  const int64_t block = channel_block();
  PerTapBlocking p{};
  p.w = w;
  p.images = x[0];
  p.in = x[1];
  p.out = y[1];
  p.in_groups = (p.in + block - 1) / block;
  p.out_groups = (p.out + block - 1) / block;
  for (int axis = 0; axis < 2; axis++) p.reach[axis] = reach_of(w, axis);
  return p;
}

/// Divides the rows of an output among chunks, and the input channels.
void choose_chunks(PerTapBlocking& p, bool expands) {
  // Bytes of sums that stay in the cache. Weights are expanded again for each chunk, so these are larger.
  const int64_t fits = expands ? 1 << 20 : 192 << 10;
  p.rows = std::clamp<int64_t>(fits / static_cast<int64_t>(sizeof(float)) / (p.w.out[1] * gemm().panel), 1, p.w.out[0]);
  p.chunks = (p.w.out[0] + p.rows - 1) / p.rows;
  p.rows = (p.w.out[0] + p.chunks - 1) / p.chunks;
  p.at_once = groups_at_once(p, expands);
}

Match match(const MatchCall& m, std::string_view name, bool expands) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (window->rank > 2) return Match::no(cat(window->rank, " spatial dimensions"));
  const Window w = window->as(2);
  if (w.groups != 1) return Match::no("groups");
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = m.call.shape("x"), y = m.outputs[0].shape();
  const int64_t block = channel_block();
  if (x[1] < block || y[1] < block) return Match::no("few channels");
  PerTapBlocking p = per_tap_blocking_of(w, x, y);
  const double share = inside(p);
  const auto stored = expands ? m.stored_in_any_format(m.call.arg_index("weight")) : std::nullopt;
  if (expands && (!stored || stored->is_half)) return Match::no("weights that the file does not store in one piece");
  if (!m.asked && ((w.dilations[0] == 1 && w.dilations[1] == 1) || share > 0.8)) return Match::no("little padding");
  choose_chunks(p, expands);
  const int64_t sums_count = p.rows * w.out[1] * gemm().panel,
                expanded_count = expands ? p.at_once * block * p.taps() * gemm().panel : 0,
                lines_count = expands ? block * block * p.taps() : 0;

  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int weight = m.call.arg_index("weight"), bias = m.call.arg_index("bias"), addend = m.call.arg_index("addend");
  KernelChoice c;
  c.kernel = name;
  c.note = expands ? "expanded in each prediction"
                   : cat(static_cast<int>(share * 100 + 0.5), " % of the products read no padding");
  c.in = in_layouts(m, "x", blocked());
  if (addend >= 0) c.in[static_cast<size_t>(addend)] = blocked();
  c.out = {blocked()};
  c.thread_scratch = static_cast<size_t>(sums_count + expanded_count + lines_count) * sizeof(float);
  c.tiles = p.images * p.panels() * p.chunks;
  c.epilogues = m.epilogue.size();
  c.cost =
      cost_of(m, share * 2.0 * static_cast<double>(p.images * w.out_count() * p.taps() * p.in * p.out), traffic(m));
  std::shared_ptr<const PackedFloats> weights;
  if (expands) {
    c.in_prepare_only.resize(m.call.all_args().size());
    c.in_prepare_only[static_cast<size_t>(weight)] = true;
  } else {
    weights = packed_before(c, m, weight, cat("taps of ", gemm().panel, " ", block), p.padded() * p.taps() * p.in,
                            [p](const float* value, float* to) { pack_weights(p, value, to); });
  }
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const float* packed = expands ? nullptr : weights->data();
    float *sums = args.own<float>(), *expanded = sums + sums_count, *lines = expanded + expanded_count;
    auto* all = args.out[0].as<float>();
    const int64_t in_image = p.in_groups * p.w.in[0] * p.w.in[1] * block, line = p.w.out[1] * block;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t chunk = t % p.chunks, panel = t / p.chunks % p.panels(), image = t / p.chunks / p.panels();
      const int64_t top = chunk * p.rows, bottom = std::min(top + p.rows, p.w.out[0]), width = p.width(panel);
      const int64_t first = panel * gemm().panel, pixels = (bottom - top) * p.w.out[1];
      std::fill_n(sums, pixels * width, 0.0f);
      for (int64_t group = 0; group < p.in_groups; group += p.at_once) {
        if (expands) expand_weights(p, *stored, panel, group, p.at_once, lines, expanded);
        multiply(p, args.in[in].as<float>() + image * in_image,
                 expands ? expanded : packed + p.weight_at(panel, 0, group),
                 (expands ? p.depth(group, p.at_once) : p.in) * width, panel, top, bottom, group, p.at_once, sums);
      }
      for (int64_t column = 0; column < width; column += block) {
        const int64_t group = (first + column) / block;
        const auto add = bias_of_group(data_of(args, bias), group, p.out);
        float* to = all + ((image * p.out_groups + group) * p.w.out[0] + top) * line;
        for (int64_t i = 0; i < pixels; i++)
          for (int64_t o = 0; o < block; o++)
            to[i * block + o] = sums[i * width + column + o] + add[static_cast<size_t>(o)];
        finish_blocked(y, data_of(args, addend), after, all, to - all, to - all + pixels * block);
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_per_tap(const MatchCall& m) { return match(m, "cpu.conv.per_tap", false); }
Match match_stored(const MatchCall& m) { return match(m, "cpu.conv.stored", true); }

}  // namespace

KernelFamily family_conv_per_tap() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.per_tap", .ops = {"conv"}, .match = match_per_tap, .addend = true, .measured = true},
      {.name = "cpu.conv.stored", .ops = {"conv"}, .match = match_stored, .addend = true, .low_memory = true}};
  return {50, defs};
}

}  // namespace moka::devices::cpu
