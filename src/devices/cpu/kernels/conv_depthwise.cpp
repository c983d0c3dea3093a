// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/conv_work.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/depthwise.h"
#include "ops/common/window.h"

namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::depthwise;
using vector::DepthwiseAxis;

struct DepthwiseBlocking {
  DepthwiseAxis down, across;
  int64_t images, channels, groups;  ///< groups: blocks of output channels
  int64_t mixed;                     ///< input channels per group of the convolution
  int64_t repeat, in_groups;         ///< output channels per input channel; blocks of input channels
  BlockedTiles tiles;

  int64_t taps() const { return down.taps * across.taps; }
  int64_t weights_of_channel() const { return mixed * taps(); }
  int64_t weight_count() const { return groups * depthwise().block * weights_of_channel(); }
};

/// Packs weights by block of channels, then by row of the window: [block][row][input channel][tap][lane].
void pack_weights(const DepthwiseBlocking& p, const float* w, float* to) {
  const int64_t block = depthwise().block, of_block = p.weights_of_channel() * block;
  for (int64_t c = 0; c < p.groups * block; c++)
    for (int64_t row = 0; row < p.down.taps; row++)
      for (int64_t from = 0; from < p.mixed; from++)
        for (int64_t tap = 0; tap < p.across.taps; tap++) {
          const int64_t at = (row * p.mixed + from) * p.across.taps + tap;
          to[c / block * of_block + at * block + c % block] =
              c < p.channels ? w[((c * p.mixed + from) * p.down.taps + row) * p.across.taps + tap] : 0;
        }
}

/// Copies rows [first, last) of the input channels of one output block, each channel `repeat` times.
void repeat_channels(const DepthwiseBlocking& p, const float* image, int64_t group, int64_t first, int64_t last,
                     float* to) {
  const int64_t block = depthwise().block, line = p.across.in * block, begin = group * block / p.repeat;
  const int64_t some = begin / block, next = std::min(some + 1, p.in_groups - 1);
  int32_t from[16];
  for (int64_t i = 0; i < block; i++) from[i] = static_cast<int32_t>((group * block + i) / p.repeat - some * block);
  const auto rows = [&](int64_t of) { return image + (of * p.down.in + first) * line; };
  vector::loops().mix_lanes(rows(some), rows(next), from, (last - first) * p.across.in, static_cast<int>(block),
                            to + first * line);
}

/// A weight that is not finite. Its product with padding is NaN.
struct OddTap {
  int64_t group, lane, tap;
};

std::vector<OddTap> odd_taps(const DepthwiseBlocking& p, const float* packed) {
  std::vector<OddTap> odd;
  const int64_t block = depthwise().block, count = p.weight_count();
  for (int64_t i = 0; i < count; i++)
    if (!std::isfinite(packed[i])) {
      const int64_t at = i / block % p.weights_of_channel(), row = at / p.across.taps / p.mixed;
      odd.push_back({i / block / p.weights_of_channel(), i % block, row * p.across.taps + at % p.across.taps});
    }
  return odd;
}

bool is_outside(const DepthwiseAxis& a, int64_t out, int64_t tap) {
  const int64_t at = out * a.stride - a.pad + tap * a.dilation;
  return at < 0 || at >= a.in;
}

void spoil_padding(const DepthwiseBlocking& p, const vector::Depthwise::Call& call, const OddTap& odd) {
  for (int64_t i = call.top; i < call.bottom; i++)
    for (int64_t j = 0; j < p.across.out; j++)
      if (is_outside(p.down, i, odd.tap / p.across.taps) || is_outside(p.across, j, odd.tap % p.across.taps))
        call.y[((i - call.top) * p.across.out + j) * depthwise().block + odd.lane] =
            std::numeric_limits<float>::quiet_NaN();
}

DepthwiseAxis axis_of(const Window& w, int i) {
  return {w.in[i], w.out[i], w.kernel[i], w.strides[i], w.dilations[i], w.pads_begin[i]};
}

DepthwiseBlocking blocking_of(const Window& w, const ir::Shape& x, int64_t out, int threads) {
  DepthwiseBlocking p{};
  p.down = w.rank == 2 ? axis_of(w, 0) : DepthwiseAxis{1, 1, 1, 1, 1, 0};
  p.across = axis_of(w, w.rank - 1);
  p.images = x[0];
  p.channels = out;
  p.mixed = x[1] / w.groups;
  p.repeat = out / x[1];
  p.in_groups = (x[1] + channel_block() - 1) / channel_block();
  p.groups = (p.channels + channel_block() - 1) / channel_block();
  p.tiles = blocked_tiles(p.images, p.groups, p.down.out, threads);
  return p;
}

struct PackedDepthwise {
  std::shared_ptr<const std::byte> weights;
  std::vector<OddTap> odd;
  const float* data() const { return reinterpret_cast<const float*>(weights.get()); }
};

/// What the kernel needs when it runs.
struct DepthwiseRun : FusedSum {
  DepthwiseBlocking p;
  ir::Shape y;
  bool moves_zero;  ///< the limits exclude zero, which the padding of channels must stay
  std::shared_ptr<const PackedDepthwise> packed;

  Status operator()(const KernelArgs& args) const;
};

Status DepthwiseRun::operator()(const KernelArgs& args) const {
  constexpr int64_t kFits = 4096;  // floats of the result that stay in the L1 cache until the epilogues are applied
  const int64_t block = depthwise().block, line = p.across.out * block;
  const int64_t most = std::max<int64_t>(1, kFits / line);
  auto* all = args.out[0].as<float>();
  for (int64_t t = args.begin; t < args.end; t++) {
    const auto [plane, top, end] = p.tiles.at(t);
    const int64_t group = plane % p.groups;
    const auto start = bias_of_group(data_of(args, bias), group, p.channels);
    vector::Depthwise::Call call;
    call.down = p.down;
    call.across = p.across;
    call.group = p.mixed;
    const int64_t plane_size = p.down.in * p.across.in * block;
    call.x = args.in[in].as<float>() + plane * plane_size;
    if (p.repeat > 1) {
      const int64_t first = std::clamp<int64_t>(top * p.down.stride - p.down.pad, 0, p.down.in);
      const int64_t reach = (end - 1) * p.down.stride - p.down.pad + (p.down.taps - 1) * p.down.dilation + 1;
      const float* image = args.in[in].as<float>() + plane / p.groups * p.in_groups * plane_size;
      repeat_channels(p, image, group, first, std::clamp(reach, first, p.down.in), args.own<float>());
      call.x = args.own<float>();
    }
    call.weight = packed->data() + group * p.weights_of_channel() * block;
    call.bias = start.data();
    call.limits = clamp();
    for (call.top = top; call.top < end; call.top = call.bottom) {
      call.bottom = std::min(call.top + most, end);
      call.y = all + (plane * p.down.out + call.top) * line;
      depthwise().rows(call);
      for (const OddTap& odd : packed->odd)
        if (odd.group == group) spoil_padding(p, call, odd);
      if (!is_finished_later() && !moves_zero) continue;
      const int64_t at = call.y - all;
      finish_blocked(y, data_of(args, addend), after, all, at, at + (call.bottom - call.top) * line);
    }
  }
  return {};
}

void tell(const DepthwiseBlocking& p, kernel::Facts& facts) {
  facts.add("block", depthwise().block, " channels")
      .add("taps", p.down.taps, " x ", p.across.taps)
      .add("blocks", p.images * p.groups)
      .add("bands of rows", p.tiles.bands);
  if (p.mixed > 1) facts.add("input channels of a result", p.mixed);
}

Match match_depthwise(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  const Window& w = *window;
  if (w.rank > 2) return Match::no(cat(w.rank, " spatial dimensions"));
  const ir::Shape &x = given.call.shape("x"), y = given.outputs[0].shape();
  const int64_t mixed = x[1] / w.groups;
  if (!lies_in_blocks(w, x[1], y[1])) return Match::no("groups that span blocks, or a window that it has no code for");
  if (!given.is_constant("weight")) return Match::no("weights that are not constant");
  const double flops = 2.0 * static_cast<double>(y.count() * mixed * w.taps());
  const MatchCall m = with_threads_for(given, flops);
  const DepthwiseBlocking p = blocking_of(w, x, y[1], m.threads);
  const int weight = m.call.arg_index("weight");
  FusedSum sum(m);
  const bool moves_zero = sum.limits && ((*sum.limits)[0] > 0 || (*sum.limits)[1] < 0) && has_padding(y, blocked());
  auto packed = std::make_shared<PackedDepthwise>();
  KernelChoice c;
  c.kernel = "cpu.conv.depthwise";
  if (mixed > 1) c.note = cat("groups of ", mixed);
  c.in = in_layouts(m, "x", blocked());
  if (sum.addend >= 0) c.in[static_cast<size_t>(sum.addend)] = blocked();
  c.out = {blocked()};
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(weight)] = true;
  c.tiles = p.images * p.groups * p.tiles.bands;
  if (p.repeat > 1) {
    c.note = cat(p.repeat, " of each channel");
    c.thread_scratch = static_cast<size_t>(p.down.in * p.across.in * channel_block()) * sizeof(float);
  }
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  c.prepare = [=](kernel::PrepareContext& context) -> Status {
    const auto bytes = static_cast<size_t>(p.weight_count()) * sizeof(float);
    packed->weights = MOKA_TRY(context.pack(weight, cat("depthwise of ", depthwise().block, " by ", p.mixed), bytes,
                                            [&](const ir::TensorView& value, std::byte* to) -> Status {
                                              pack_weights(p, value.as<float>(), reinterpret_cast<float*>(to));
                                              return {};
                                            }));
    packed->odd = odd_taps(p, packed->data());
    return {};
  };
  c.facts = [p](kernel::Facts& facts) { tell(p, facts); };
  c.run = [run = DepthwiseRun{std::move(sum), p, y, moves_zero, packed}](const KernelArgs& args) { return run(args); };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_depthwise() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.depthwise", .ops = {"conv"}, .match = match_depthwise, .addend = true, .measured = true}};
  return {70, defs};
}

}  // namespace moka::devices::cpu
