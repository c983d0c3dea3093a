// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "devices/cpu/common/conv_work.h"
#include "devices/cpu/common/dense_windows.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gemm.h"

namespace moka::devices::cpu {

namespace {

using vector::dense;

constexpr int64_t kDenseFinished =
    8 * 12;  // pixels of a panel that stay in the L1 cache until the epilogues are applied

/// Turns rows [channel][taps][columns of the window] into [channel][columns][taps].
const float* swap_columns(const DenseBlocking& p, const float* rows, int64_t channels, std::vector<float>& to) {
  float* at = to.data();
  for (int64_t o = 0; o < channels; o++, rows += p.in * p.taps())
    for (int64_t k = 0; k < p.in; k++)
      for (int64_t tap = 0; tap < p.taps(); tap++) *at++ = rows[tap * p.in + k];
  return to.data();
}

/// Packs weights as [group][panel][block of input channels][tap][channel][width].
void pack_weights(const DenseBlocking& p, const PanelWeights::Read& read, const PanelWeights::Put& put) {
  const int64_t row = p.in * p.taps();
  std::vector<float> room(static_cast<size_t>(kMostDensePanel * row)), swapped(p.unit == 1 ? room.size() : 0);
  for (int64_t group = 0; group < p.w.groups; group++)
    for (int64_t panel = 0; panel < p.panels_of_group(); panel++) {
      const int64_t first = group * p.out + p.column(panel);
      const float* rows = read(first * row, p.used(panel) * row, room.data());
      if (p.unit == 1) rows = swap_columns(p, rows, p.used(panel), swapped);
      put(group * p.weights_of_group() + p.column(panel) * row, p.width(panel) * row,
          [&](float* to) { pack_dense_panel(p, panel, rows, to); });
    }
}

/// The weights if they may stay compressed: rows that share a scale must remain adjacent.
std::shared_ptr<const CompressedWeights> compressed_of(const MatchCall& m, int arg, const DenseBlocking& p) {
  auto found =
      CompressedWeights::of(m, arg, p.w.groups * p.out, p.in * p.taps(), CompressedWeights::Precision::rounded);
  if (found == nullptr || found->scaled_together() == found->depth()) return found;
  return p.unit != 1 && found->scaled_together() % (dense().block * p.taps()) == 0 ? found : nullptr;
}

/// Packs in the same order as pack_weights().
void pack_compressed(const DenseBlocking& p, CompressedWeights::Packer& packer) {
  const int64_t columns = p.vectors() * dense().lanes;
  std::vector<float> swapped(static_cast<size_t>(p.unit == 1 ? kMostDensePanel * p.in * p.taps() : 0));
  for (int64_t i = 0; i < p.panels(); i++) {
    const int64_t panel = i % p.panels_of_group();
    const auto pack = [&](const float* from, int64_t depth, float* at) {
      if (depth != p.in * p.taps())
        return vector::gemm().pack_panel(from, depth, depth, p.used(panel), p.width(panel), at, nullptr);
      pack_dense_panel(p, panel, p.unit == 1 ? swap_columns(p, from, p.used(panel), swapped) : from, at);
    };
    packer.pack(i / p.panels_of_group() * columns + p.column(panel), p.used(panel), p.width(panel), pack);
  }
}

std::shared_ptr<const PanelWeights> weights_of(KernelChoice& c, const MatchCall& m, const DenseBlocking& p) {
  const int arg = m.call.arg_index("weight");
  std::string key =
      cat(p.unit == 1 ? "dense rows of " : "dense of ", dense().lanes, " ", dense().block, ", ", p.w.groups, " groups");
  if (auto compressed = compressed_of(m, arg, p); compressed)
    return PanelWeights::of_compressed(c, m, arg, std::move(key), std::move(compressed),
                                       p.w.groups * p.vectors() * dense().lanes,
                                       [p](CompressedWeights::Packer& packer) { pack_compressed(p, packer); });
  return PanelWeights::of(
      c, m, arg, std::move(key), p.weights(),
      [p](const PanelWeights::Read& read, const PanelWeights::Put& put) { pack_weights(p, read, put); });
}

/// Runs tiles of one convolution.
struct DenseRun : FusedSum {
  DenseBlocking p;
  ir::Shape y;
  std::shared_ptr<const PanelWeights> weights;

  void operator()(const KernelArgs& args) const {
    const DensePlaces places(p, args.own(args.thread) + weights->room(p.weights_at_once()) * sizeof(float));
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t part = t % p.parts, chunk = t / p.parts % p.chunks, image = t / p.parts / p.chunks;
      const int64_t first = p.first_pixel(chunk), pixels = p.first_pixel(chunk + 1) - first;
      if (t == args.begin || part == 0) places.find(p, first, pixels);
      for (int64_t panel = p.first_panel(part); panel < p.first_panel(part + 1); panel++)
        multiply(args, places, image, panel, first, pixels);
    }
  }

 private:
  /// Computes `pixels` pixels of the channels of a panel.
  void multiply(const KernelArgs& args, const DensePlaces& places, int64_t image, int64_t panel, int64_t first,
                int64_t pixels) const {
    const int64_t block = dense().block, group = panel / p.panels_of_group(), of_group = panel % p.panels_of_group();
    const int64_t column = p.column(of_group), plane = p.pixels() * block;
    auto* const all = args.out[0].as<float>();
    std::array<float, kMostDensePanel> start{};
    if (bias >= 0) std::copy_n(data_of(args, bias) + group * p.out + column, p.used(of_group), start.begin());
    const DenseTask task{
        .p = p,
        .places = places,
        .weights = *weights,
        .x = args.in[in].as<float>() + (image * p.w.groups + group) * (p.unit == 1 ? 1 : p.in_groups) * p.in_plane(),
        .of_group = of_group,
        .weight = group * p.weights_of_group() + column * p.in * p.taps(),
        .room = args.own<float>(),
        .bias = start.data(),
        .limits = clamp(),
        .y = all + ((image * p.w.groups + group) * p.out_groups + column / block) * plane + first * block,
        .y_step = plane};
    const bool more = is_finished_later();
    task.run(pixels, more ? kDenseFinished : pixels, false, [&](int64_t, int64_t count, float* line) {
      for (const float* end = line + p.width(of_group) / block * plane; more && line < end; line += plane)
        finish_blocked(y, data_of(args, addend), after, all, line - all, line - all + count * block);
    });
  }
};

/// Whether a window reads a row-major image of few channels in place: columns side by side, and nothing outside.
bool reads_rows(const ops::Window& w, int64_t channels) {
  if (w.rank > 2 || w.groups > 1 || channels >= channel_block() || w.dilations[w.rank - 1] != 1) return false;
  for (int i = 0; i < w.rank; i++)
    if (w.pads_begin[i] != 0 || (w.out[i] - 1) * w.strides[i] + w.extent(i) > w.in[i]) return false;
  return true;
}

/// Why another kernel was measured to be faster; empty: none was.
std::string why_slower(const DenseBlocking& p) {
  const int64_t wide = isa() == Isa::avx512 ? 16 : 12;
  if (p.unit == 1 ? p.in < wide : p.in < channel_block()) return "few channels";
  if (p.out < channel_block()) return "few output channels";
#if defined(__x86_64__)
  if (isa() == Isa::base) return "vectors of four floats";
#endif
  if (isa() == Isa::avx512 && p.vectors() == 1) return "one vector of output channels";
  if (p.taps() == 1 && p.in < kDeepPixel) return "one tap and few channels";
  return {};
}

void tell(const DenseBlocking& p, kernel::Facts& facts) {
  facts.add("vector", vector::dense().lanes, " output channels")
      .add("panel", std::min(2 * vector::dense().lanes, p.width(0)), " output channels")
      .add("panels", p.panels())
      .add("chunks of pixels", p.images * p.chunks, " of up to ", p.most_pixels())
      .add("parts of panels", p.parts)
      .add("input channels at once", std::min(p.in, p.deep * vector::dense().block));
}

Match match_dense(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (!given.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = given.call.shape("x"), y = given.outputs[0].shape();
  const bool rows = reads_rows(*window, x[1]);
  DenseBlocking p = rows ? dense_blocking_of_rows(window->as_3d(), x[0], x[1], y[1])
                         : dense_blocking_of(window->as_3d(), x[0], x[1], y[1]);
  if (p.w.groups > 1 && (p.in % channel_block() != 0 || p.out % channel_block() != 0))
    return Match::no("groups that span blocks");
  if (std::string why = why_slower(p); !given.asked && !why.empty()) return Match::no(why);
  if (std::string why = too_large_for_dense(p); !why.empty()) return Match::no(why);
  const double flops = 2.0 * static_cast<double>(y.count() * p.in * p.taps());
  const MatchCall m = with_threads_for(given, flops);
  divide_dense(p, m.threads);
  DenseRun run{FusedSum(m), p, y, nullptr};
  KernelChoice c;
  c.kernel = "cpu.conv.dense";
  c.in = in_layouts(m, "x", rows ? Layout{} : blocked());
  if (run.addend >= 0) c.in[static_cast<size_t>(run.addend)] = blocked();
  c.out = {blocked()};
  c.tiles = p.images * p.chunks * p.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  run.weights = weights_of(c, m, p);
  c.thread_scratch = static_cast<size_t>(p.table() + run.weights->room(p.weights_at_once()) * 4);
  c.facts = [p](kernel::Facts& facts) { tell(p, facts); };
  c.run = [run = std::move(run)](const KernelArgs& args) -> Status {
    run(args);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_dense() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.dense", .ops = {"conv"}, .match = match_dense, .addend = true, .measured = true}};
  return {75, defs};
}

}  // namespace moka::devices::cpu
