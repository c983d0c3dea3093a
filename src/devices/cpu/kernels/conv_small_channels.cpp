// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/cpu/vector/small_channels.h"
#include "ops/common/window.h"

/// Convolutions whose input channels do not fill a block, such as the first of a net. The input is row-major, and each
/// tap of each channel is broadcast to a vector of output channels.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::small_channels;

constexpr int64_t kMostChannelsPanel = 32;
constexpr int64_t kTapsOfSum = 96;     // taps per partial sum, which bounds the rounding error
constexpr int64_t kPixelsOfRun = 112;  // pixels that stay in the L1 cache until the epilogues are applied

struct Axis {
  int64_t in = 1, out = 1, taps = 1, stride = 1, dilation = 1, pad = 0;
  int64_t span() const { return (taps - 1) * dilation + 1; }
};

struct SmallChannelsBlocking {
  Axis deep, down, across;
  int64_t images, in, out, out_groups, bands;  ///< bands: divisions of the rows of an image or of a volume's slice

  int64_t planes() const { return in * deep.taps; }  ///< slices that a result reads, of all channels
  int64_t taps() const { return planes() * down.taps * across.taps; }
  int64_t columns() const { return out_groups * small_channels().block; }
  int64_t panel() const { return 2 * small_channels().lanes; }
  int64_t width(int64_t column) const { return std::min(panel(), columns() - column); }
  /// Whether lines are read in place, which needs no padding.
  bool direct() const { return lies_inside(deep) && lies_inside(down) && lies_inside(across); }
  static bool lies_inside(const Axis& a) { return a.pad == 0 && (a.out - 1) * a.stride + a.span() <= a.in; }
  /// Otherwise a ring keeps the last padded lines of each plane.
  int64_t line() const { return (across.out - 1) * across.stride + across.span(); }
  int64_t ring() const { return direct() ? 0 : planes() * down.span() * line(); }
  /// The slice of the input that tap `tap` of output slice `z` reads; it may lie in the padding.
  int64_t slice(int64_t z, int64_t tap) const { return z * deep.stride + tap * deep.dilation - deep.pad; }
  int64_t scratch() const { return (ring() * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64 + taps() * 8; }
};

void pack_weights(const SmallChannelsBlocking& p, const float* w, float* to) {
  for (int64_t column = 0; column < p.columns(); column += p.panel())
    vector::gemm().pack_panel(w + column * p.taps(), p.taps(), p.taps(), std::min(p.width(column), p.out - column),
                              p.width(column), to + column * p.taps(), nullptr);
}

/// Copies line `at` of every padded plane that output slice `z` reads into the ring.
void copy_line(const SmallChannelsBlocking& p, const float* x, int64_t z, int64_t at, float* ring) {
  const int64_t row = at - p.down.pad, width = p.across.in, line = p.line();
  const int64_t before = std::clamp<int64_t>(p.across.pad, 0, line);
  const int64_t count = std::clamp<int64_t>(width, 0, line - before);
  for (int64_t k = 0; k < p.planes(); k++) {
    float* to = ring + (k * p.down.span() + at % p.down.span()) * line;
    const int64_t slice = p.slice(z, k % p.deep.taps);
    if (row < 0 || row >= p.down.in || slice < 0 || slice >= p.deep.in) {
      std::fill_n(to, line, 0.0f);
      continue;
    }
    const float* from = x + ((k / p.deep.taps * p.deep.in + slice) * p.down.in + row) * width;
    std::fill_n(to, before, 0.0f);
    std::copy_n(from, count, to + before);
    // Prefetch the input of the next output row.
    const int64_t ahead = p.down.stride * width;
    for (int64_t i = 0; i < count && row + p.down.stride < p.down.in; i += 16)
      __builtin_prefetch(from + ahead + i, 0, 2);
    std::fill_n(to + before + count, line - before - count, 0.0f);
  }
}

/// Finds where each tap of row `row` of output slice `z` begins, in the ring or in the image.
void find_taps(const SmallChannelsBlocking& p, int64_t z, int64_t row, int64_t* taps) {
  const bool direct = p.direct();
  const int64_t lines = direct ? p.down.in : p.down.span(), line = direct ? p.across.in : p.line();
  for (int64_t k = 0; k < p.planes(); k++) {
    const int64_t plane = direct ? k / p.deep.taps * p.deep.in + p.slice(z, k % p.deep.taps) : k;
    for (int64_t i = 0; i < p.down.taps; i++) {
      const int64_t from = (plane * lines + (row * p.down.stride + i * p.down.dilation) % lines) * line;
      for (int64_t j = 0; j < p.across.taps; j++) *taps++ = from + j * p.across.dilation;
    }
  }
}

/// Whether this kernel was measured to be at least as fast as oneDNN.
bool pays(const SmallChannelsBlocking& p, std::span<const Activation> after) {
  const bool longest = isa() == Isa::avx512;
  constexpr int64_t kLongWindow = 160;
  if (p.across.stride > 2)
    return longest ? p.in == 1 || p.taps() > kLongWindow : isa() == Isa::avx2 && p.in == 1 && p.taps() > kLongWindow;
  const std::optional<vector::Unary> f = after.empty() ? std::nullopt : std::optional(after[0].f);
  if (longest) return f != vector::Unary::tanh;
  return isa() == Isa::avx2 || p.across.taps > 7 || f == vector::Unary::silu || f == vector::Unary::sigmoid ||
         f == vector::Unary::tanh;
}

SmallChannelsBlocking small_channels_blocking_of(const Window& w, const ir::Shape& x, int64_t out, int threads) {
  const auto axis = [&](int i) {
    return Axis{w.in[i], w.out[i], w.kernel[i], w.strides[i], w.dilations[i], w.pads_begin[i]};
  };
  SmallChannelsBlocking p{};
  if (w.rank >= 2) p.down = axis(w.rank - 2);
  if (w.rank == 3) p.deep = axis(0);
  p.across = axis(w.rank - 1);
  p.images = x[0];
  p.in = x[1];
  p.out = out;
  p.out_groups = (out + channel_block() - 1) / channel_block();
  p.bands = threads == 1 ? 1 : std::min<int64_t>(4 * threads, p.down.out);
  return p;
}

/// What the kernel needs when it runs.
struct SmallChannelsRun : FusedSum {
  SmallChannelsBlocking p;
  ir::Shape y;
  std::shared_ptr<const PackedFloats> weights;

  Status operator()(const KernelArgs& args) const;

 private:
  /// Where each tap of a row reads `x`.
  int64_t* taps_of(const KernelArgs& args) const {
    return reinterpret_cast<int64_t*>(args.own(args.thread) + p.scratch()) - p.taps();
  }
  /// A panel of output channels from `column` on. `row` counts the rows of all slices.
  void compute_row(const KernelArgs& args, const float* x, int64_t image, int64_t row, int64_t column) const;
};

void SmallChannelsRun::compute_row(const KernelArgs& args, const float* x, int64_t image, int64_t row,
                                   int64_t column) const {
  const int64_t block = small_channels().block, line = p.across.out * block, plane = p.deep.out * p.down.out * line;
  const int64_t* taps = taps_of(args);
  auto* all = args.out[0].as<float>();
  const auto* packed = weights->data();
  std::array<float, kMostChannelsPanel> of_panel{};
  vector::SmallChannels::Call call;
  call.width = p.width(column);
  call.used = std::min(call.width, p.out - column);
  if (bias >= 0) std::copy_n(data_of(args, bias) + column, call.used, of_panel.begin());
  call.stride = p.across.stride;
  call.y_step = plane;
  for (int64_t first = 0; first < p.across.out; first += kPixelsOfRun) {
    call.x = x + first * p.across.stride;
    call.pixels = std::min(kPixelsOfRun, p.across.out - first);
    call.y = all + (image * p.out_groups + column / block) * plane + row * line + first * block;
    for (int64_t tap = 0; tap < p.taps(); tap += kTapsOfSum) {
      call.taps = taps + tap;
      call.count = std::min(kTapsOfSum, p.taps() - tap);
      call.weight = packed + column * p.taps() + tap * call.width;
      const bool last = tap + call.count == p.taps();
      call.add = tap > 0;
      call.bias = last && bias >= 0 ? of_panel.data() : nullptr;
      call.limits = last ? clamp() : nullptr;
      small_channels().multiply(call);
    }
    if (!is_finished_later()) continue;
    for (float* to = call.y; to < call.y + call.width / block * plane; to += plane)
      finish_blocked(y, data_of(args, addend), after, all, to - all, to - all + call.pixels * block);
  }
}

Status SmallChannelsRun::operator()(const KernelArgs& args) const {
  auto* ring = args.own<float>();
  int64_t* taps = taps_of(args);
  for (int64_t t = args.begin; t < args.end; t++) {
    const int64_t band = t % p.bands, z = t / p.bands % p.deep.out, image = t / p.bands / p.deep.out;
    const float* from = args.in[in].as<float>() + image * p.in * p.deep.in * p.down.in * p.across.in;
    int64_t copied = 0;
    for (int64_t row = p.down.out * band / p.bands; row < p.down.out * (band + 1) / p.bands; row++) {
      const int64_t top = row * p.down.stride;
      if (!p.direct())
        for (copied = std::max(copied, top); copied < top + p.down.span(); copied++)
          copy_line(p, from, z, copied, ring);
      find_taps(p, z, row, taps);
      for (int64_t column = 0; column < p.columns(); column += p.panel())
        compute_row(args, p.direct() ? from : ring, image, z * p.down.out + row, column);
    }
  }
  return {};
}

void tell(const SmallChannelsBlocking& p, kernel::Facts& facts) {
  facts.add("panel", p.width(0), " output channels")
      .add("taps of all channels", p.taps())
      .add("bands of rows", p.bands)
      .add("lines", p.direct() ? "read in place" : "copied with their padding");
}

Match match_small_channels(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  const Window& w = *window;
  if (w.groups != 1) return Match::no("groups");
  if (!given.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = given.call.shape("x"), y = given.outputs[0].shape();
  if (x[1] >= channel_block()) return Match::no("many input channels");
  if (y[1] < channel_block()) return Match::no("few output channels");
  const double flops = 2.0 * static_cast<double>(y.count() * x[1] * w.taps());
  const MatchCall m = with_threads_for(given, flops);
  const SmallChannelsBlocking p = small_channels_blocking_of(w, x, y[1], m.threads);
  constexpr int64_t kMostRing = 1 << 17, kMostTaps = 1 << 12;
  if (p.deep.taps * p.down.span() * p.line() > kMostRing || p.taps() > kMostTaps) return Match::no("a large window");
  const int weight = m.call.arg_index("weight");
  if (!given.asked && !pays(p, activations_of(m.epilogue)))
    return Match::no("a window or a function that oneDNN is good at");
  FusedSum sum(m);
  KernelChoice c;
  c.kernel = "cpu.conv.small_channels";
  c.in.resize(m.call.all_args().size());
  if (sum.addend >= 0) c.in[static_cast<size_t>(sum.addend)] = blocked();
  c.out = {blocked()};
  c.thread_scratch = static_cast<size_t>(p.scratch());
  c.tiles = p.images * p.deep.out * p.bands;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  const auto weights =
      packed_before(c, m, weight, cat("small channels of ", small_channels().lanes, " ", small_channels().block),
                    p.columns() * p.taps(), [p](const float* value, float* to) { pack_weights(p, value, to); });
  c.facts = [p](kernel::Facts& facts) { tell(p, facts); };
  c.run = [run = SmallChannelsRun{std::move(sum), p, y, weights}](const KernelArgs& args) { return run(args); };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_small_channels() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.small_channels", .ops = {"conv"}, .match = match_small_channels, .addend = true}};
  return {80, defs};
}

}  // namespace moka::devices::cpu
