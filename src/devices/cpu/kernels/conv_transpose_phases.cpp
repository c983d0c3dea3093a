// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "devices/cpu/common/dense_windows.h"
#include "devices/cpu/common/transposed_phases.h"
#include "devices/cpu/kernels/family.h"

/// Transposed convolutions whose phases are computed by dense tiles.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::dense;

constexpr int64_t kPhasePixels = 8 * 12;  // pixels of a panel that stay in the L1 cache until they are interleaved

struct DensePhase {
  TransposedPhase of;
  DenseBlocking p;  ///< without input channels if there are no taps
  int64_t weight;   ///< of its first element in the packed weights
};

struct PhasesBlocking {
  Window w;  ///< of rank 3
  std::vector<DensePhase> phases;
  int64_t images, in, out;  ///< in, out: channels per group
  int64_t chunks = 1, parts = 1;
  int64_t weights = 0;  ///< of all phases

  const DenseBlocking& any() const { return phases[0].p; }
  int64_t out_plane() const { return w.out_count() * dense().block; }
  int64_t most(int64_t (*of)(const DenseBlocking&)) const {
    int64_t found = 0;
    for (const DensePhase& phase : phases) found = std::max(found, of(phase.p));
    return found;
  }
  int64_t table() const {
    return most([](const DenseBlocking& p) { return p.table(); });
  }
  int64_t weights_at_once() const {
    return most([](const DenseBlocking& p) { return p.weights_at_once(); });
  }
  /// Results of a panel that wait until they are interleaved.
  static int64_t piece(const DenseBlocking& p) { return p.deep < p.in_groups ? p.most_pixels() : kPhasePixels; }
  int64_t made() const { return most(piece) * kMostDensePanel; }
};

PhasesBlocking phases_blocking_of(const Window& w, int64_t images, int64_t x, int64_t y, int threads) {
  PhasesBlocking b{.w = w, .phases = {}, .images = images, .in = x / w.groups, .out = y / w.groups};
  for (TransposedPhase& of : phases_of(w)) {
    DensePhase phase{.of = of, .p = dense_blocking_of(of.w, images, of.empty ? 0 : x, y), .weight = b.weights};
    phase.p.in_groups = std::max<int64_t>(phase.p.in_groups, 1);
    divide_dense(phase.p, threads);
    b.weights += phase.p.weights();
    b.chunks = std::max(b.chunks, phase.p.chunks);
    b.parts = std::max(b.parts, phase.p.parts);
    b.phases.push_back(std::move(phase));
  }
  for (DensePhase& phase : b.phases) {
    phase.p.chunks = b.chunks;
    phase.p.parts = b.parts;
  }
  return b;
}

/// Packs weights as [phase][group][panel][block of input channels][tap][channel][width], and behind them 1 if all are
/// finite, else 0.
void pack_weights(const PhasesBlocking& b, const PanelWeights::Read& read, const PanelWeights::Put& put) {
  const int64_t taps = b.w.taps();
  const auto count = static_cast<size_t>(b.in * kMostDensePanel * taps);
  std::vector<float> panel_rows(count), rows(count), room(static_cast<size_t>(kMostDensePanel * taps));
  bool finite = true;
  for (int64_t group = 0; group < b.w.groups; group++)
    for (int64_t panel = 0; panel < b.any().panels_of_group(); panel++) {
      const int64_t column = b.any().column(panel), columns = b.any().used(panel), n = columns * taps;
      for (int64_t c = 0; c < b.in; c++) {
        const float* from = read(((group * b.in + c) * b.out + column) * taps, n, room.data());
        std::copy_n(from, n, panel_rows.data() + c * n);
      }
      finite = finite &&
               std::all_of(panel_rows.data(), panel_rows.data() + b.in * n, [](float v) { return std::isfinite(v); });
      for (const DensePhase& phase : b.phases) {
        if (phase.of.empty) continue;
        const DenseBlocking& p = phase.p;
        gather_taps(b.w, phase.of, panel_rows.data(), b.in, columns, rows.data());
        put(phase.weight + group * p.weights_of_group() + column * p.in * p.taps(), p.width(panel) * p.in * p.taps(),
            [&](float* to) { pack_dense_panel(p, panel, rows.data(), to); });
      }
    }
  put(b.weights, 1, [&](float* to) { *to = finite ? 1 : 0; });
}

/// Runs tiles of one transposed convolution.
struct PhasesRun {
  PhasesBlocking b;
  size_t in;
  int bias;
  std::vector<Activation> after;
  std::optional<Limits> limits;
  std::shared_ptr<const PanelWeights> weights;

  int64_t room() const { return weights->room(b.weights_at_once()); }
  int64_t scratch() const { return (room() + b.made()) * static_cast<int64_t>(sizeof(float)) + b.table(); }

  Status operator()(const KernelArgs& args) const {
    auto* table = reinterpret_cast<std::byte*>(args.own<float>() + room() + b.made());
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t part = t % b.parts, chunk = t / b.parts % b.chunks, image = t / b.parts / b.chunks;
      for (const DensePhase& phase : b.phases) {
        const DenseBlocking& p = phase.p;
        const int64_t first = p.first_pixel(chunk), pixels = p.first_pixel(chunk + 1) - first;
        if (pixels == 0) continue;
        const DensePlaces places(p, table);
        places.find(p, first, pixels);
        for (int64_t panel = p.first_panel(part); panel < p.first_panel(part + 1); panel++)
          multiply(args, phase, places, image, panel, first, pixels);
      }
    }
    return {};
  }

 private:
  bool finite() const {
    return weights->is_half() ? *weights->at<uint16_t>(b.weights) != 0 : *weights->at<float>(b.weights) != 0;
  }

  void multiply(const KernelArgs& args, const DensePhase& phase, const DensePlaces& places, int64_t image,
                int64_t panel, int64_t first, int64_t pixels) const {
    const DenseBlocking& p = phase.p;
    const int64_t block = dense().block, group = panel / p.panels_of_group(), of_group = panel % p.panels_of_group();
    const int64_t column = p.column(of_group), in_groups = (b.in + block - 1) / block;
    std::array<float, kMostDensePanel> start{};
    if (bias >= 0) std::copy_n(data_of(args, bias) + group * p.out + column, p.used(of_group), start.begin());
    const DenseTask task{.p = p,
                         .places = places,
                         .weights = *weights,
                         .x = args.in[in].as<float>() + (image * p.w.groups + group) * in_groups * p.in_plane(),
                         .of_group = of_group,
                         .weight = phase.weight + group * p.weights_of_group() + column * p.in * p.taps(),
                         .room = args.own<float>(),
                         .bias = start.data(),
                         .limits = limits ? limits->data() : nullptr,
                         .y = args.own<float>() + room(),
                         .y_step = b.piece(p) * block};
    float* plane =
        args.out[0].as<float>() + ((image * p.w.groups + group) * p.out_groups + column / block) * b.out_plane();
    const auto finish = [&](int64_t done, int64_t count, float* made) {
      for (int64_t k = 0; k < p.width(of_group); k += block) {
        float* from = made + k / block * task.y_step;
        apply_all(after, from, count * block);
        interleave(b.w, phase.of, from, first + done, count, block, std::clamp<int64_t>(p.out - column - k, 0, block),
                   plane + k / block * b.out_plane());
      }
    };
    if (finite())
      task.run(pixels, kPhasePixels, true, finish);
    else
      for (int64_t i = 0; i < pixels; i++) {
        task.run_inside(i);
        finish(i, 1, task.y);
      }
  }
};

/// Why another kernel was measured to be faster; empty: none was.
std::string why_slower(const PhasesBlocking& b) {
  constexpr int64_t kFewOutputs = 7;
  const bool adjacent = b.w.strides[0] * b.w.strides[1] * b.w.strides[2] == 1;
  if (b.out <= (adjacent ? kFewOutputs : 2)) return "few output channels";
  return {};
}

Match match_phases(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_transpose_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (!given.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = given.call.shape("x"), y = given.outputs[0].shape();
  const Window w = window->as_3d();
  if (std::string why = too_many_phases(w); !why.empty()) return Match::no(why);
  const double flops = 2.0 * static_cast<double>(x.count() * y[1] / w.groups * w.taps());
  const MatchCall m = with_threads_for(given, flops);
  PhasesRun run{.b = phases_blocking_of(w, x[0], x[1], y[1], m.threads),
                .in = static_cast<size_t>(m.call.arg_index("x")),
                .bias = m.call.arg_index("bias"),
                .after = activations_of(m.epilogue),
                .limits = {},
                .weights = {}};
  const PhasesBlocking& b = run.b;
  if (w.groups > 1 && (b.in % channel_block() != 0 || b.out % channel_block() != 0))
    return Match::no("groups that span blocks");
  for (const DensePhase& phase : b.phases)
    if (std::string why = too_large_for_dense(phase.p); !why.empty()) return Match::no(why);
  if (std::string why = why_slower(b); !given.asked && !why.empty()) return Match::no(why);
  run.limits = take_limits(run.after);
  std::string key = cat("phases of ", dense().lanes, " ", dense().block, ", ", w.groups, " groups", phases_text(w));
  KernelChoice c;
  c.kernel = "cpu.conv_transpose.phases";
  c.in = in_layouts(m, "x", blocked());
  c.out = {blocked()};
  c.tiles = b.images * b.chunks * b.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  run.weights = PanelWeights::of(
      c, m, m.call.arg_index("weight"), std::move(key), b.weights + 1,
      [b](const PanelWeights::Read& read, const PanelWeights::Put& put) { pack_weights(b, read, put); });
  c.thread_scratch = static_cast<size_t>(run.scratch());
  c.run = std::move(run);
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_transpose_phases() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv_transpose.phases", .ops = {"conv_transpose"}, .match = match_phases, .measured = true}};
  return {100, defs};
}

}  // namespace moka::devices::cpu
