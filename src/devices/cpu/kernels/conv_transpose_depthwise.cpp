// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/transposed_phases.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/depthwise.h"

/// Transposed convolutions of each channel alone, such as those that enlarge maps bilinearly. Each phase is an ordinary
/// depthwise convolution.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::depthwise;
using vector::DepthwiseAxis;

constexpr int64_t kFits = 4096;  // floats of a phase that stay in the L1 cache until they are interleaved

struct DepthwisePhases {
  Window w;  ///< of rank 3, with one slice
  std::vector<TransposedPhase> phases;
  int64_t images, channels, groups;  ///< groups: blocks of channels
  int64_t bands;                     ///< divisions of the rows of each phase, which go through all phases

  int64_t block() const { return depthwise().block; }
  int64_t in_plane() const { return w.in_count() * block(); }
  int64_t out_plane() const { return w.out_count() * block(); }
  int64_t weights_of_block() const {
    int64_t taps = 0;
    for (const TransposedPhase& phase : phases) taps += phase.empty ? 0 : phase.w.taps();
    return taps * block();
  }
  /// Floats of a phase's band at most; phase 0 has the most rows and columns.
  int64_t made() const { return (phases[0].w.out[1] + bands - 1) / bands * phases[0].w.out[2] * block(); }
};

/// Packs weights as [block][phase][tap][lane].
void pack_weights(const DepthwisePhases& b, const float* w, float* to) {
  std::vector<float> taps(static_cast<size_t>(b.w.taps()));
  for (int64_t group = 0; group < b.groups; group++)
    for (const TransposedPhase& phase : b.phases) {
      if (phase.empty) continue;
      const int64_t count = phase.w.taps();
      for (int64_t lane = 0; lane < b.block(); lane++) {
        const int64_t channel = group * b.block() + lane;
        std::fill_n(taps.data(), count, 0.0f);
        if (channel < b.channels) gather_taps(b.w, phase, w + channel * b.w.taps(), 1, 1, taps.data());
        for (int64_t tap = 0; tap < count; tap++) to[tap * b.block() + lane] = taps[static_cast<size_t>(tap)];
      }
      to += count * b.block();
    }
}

DepthwiseAxis axis_of(const TransposedPhase& phase, int i) {
  const Window& w = phase.w;
  return {w.in[i], w.out[i], phase.empty ? 0 : w.kernel[i], 1, w.dilations[i], w.pads_begin[i]};
}

struct DepthwisePhasesRun {
  DepthwisePhases b;
  size_t in;
  int bias;
  std::vector<Activation> after;
  std::optional<Limits> limits;
  std::shared_ptr<const PackedFloats> weights;

  Status operator()(const KernelArgs& args) const {
    auto* made = args.own<float>();
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t band = t % b.bands, plane = t / b.bands, group = plane % b.groups;
      const auto start = bias_of_group(data_of(args, bias), group, b.channels);
      vector::Depthwise::Call call{};
      call.group = 1;
      call.x = args.in[in].as<float>() + plane * b.in_plane();
      call.weight = weights->data() + group * b.weights_of_block();
      call.bias = start.data();
      call.limits = limits ? limits->data() : nullptr;
      call.y = made;
      for (const TransposedPhase& phase : b.phases) {
        call.down = axis_of(phase, 1);
        call.across = axis_of(phase, 2);
        call.top = call.down.out * band / b.bands;
        call.bottom = call.down.out * (band + 1) / b.bands;
        const int64_t width = call.across.out, pixels = (call.bottom - call.top) * width;
        depthwise().rows(call);
        apply_all(after, made, pixels * b.block());
        interleave(b.w, phase, made, call.top * width, pixels, b.block(),
                   std::min(b.block(), b.channels - group * b.block()),
                   args.out[0].as<float>() + plane * b.out_plane());
        if (!phase.empty) call.weight += phase.w.taps() * b.block();
      }
    }
    return {};
  }
};

Match match_depthwise_phases(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_transpose_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (window->rank > 2) return Match::no(cat(window->rank, " spatial dimensions"));
  if (!given.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = given.call.shape("x"), y = given.outputs[0].shape();
  const Window w = window->as_3d();
  if (w.groups != x[1] || y[1] != x[1]) return Match::no("channels that depend on each other");
  if (std::string why = too_many_phases(w); !why.empty()) return Match::no(why);
  const double flops = 2.0 * static_cast<double>(x.count() * w.taps());
  const MatchCall m = with_threads_for(given, flops);
  DepthwisePhasesRun run;
  run.in = static_cast<size_t>(m.call.arg_index("x"));
  run.bias = m.call.arg_index("bias");
  run.after = activations_of(m.epilogue);
  DepthwisePhases& b = run.b;
  b.w = w;
  b.phases = phases_of(w);
  b.images = x[0];
  b.channels = x[1];
  run.limits = take_limits(run.after);
  b.groups = (b.channels + b.block() - 1) / b.block();
  const int64_t rows = b.phases[0].w.out[1], wanted = m.threads == 1 ? 1 : 4 * m.threads / (b.images * b.groups);
  b.bands = std::clamp(rows * b.phases[0].w.out[2] * b.block() / kFits + 1, std::min(wanted, rows), rows);
  std::string key = cat("depthwise phases of ", b.block(), phases_text(w));
  KernelChoice c;
  c.kernel = "cpu.conv_transpose.depthwise";
  c.in = in_layouts(m, "x", blocked());
  c.out = {blocked()};
  c.tiles = b.images * b.groups * b.bands;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  c.thread_scratch = static_cast<size_t>(b.made()) * sizeof(float);
  run.weights = packed_before(c, m, m.call.arg_index("weight"), std::move(key), b.groups * b.weights_of_block(),
                              [b](const float* value, float* to) { pack_weights(b, value, to); });
  c.run = std::move(run);
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_transpose_depthwise() {
  static const KernelDef defs[] = {{.name = "cpu.conv_transpose.depthwise",
                                    .ops = {"conv_transpose"},
                                    .match = match_depthwise_phases,
                                    .measured = true}};
  return {95, defs};
}

}  // namespace moka::devices::cpu
