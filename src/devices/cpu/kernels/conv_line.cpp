// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/kernels/family.h"
#include "ops/common/window.h"

/// One-dimensional convolutions whose channels are too few for matrix products.
namespace moka::devices::cpu {

namespace {

using ops::Window;

constexpr int64_t kChunk = 4096;       // outputs per tile
constexpr int64_t kLongest = 1 << 20;  // window, dilation included

struct Line {
  Window w;
  int64_t in, out, per_group, outs_per_group;
  int64_t phase;            // floats per phase; phase s holds elements s, s + stride, ... of the padded input
  std::vector<int64_t> at;  // where each tap begins in the phases

  int64_t taps() const { return w.kernel[0]; }
};

/// Copies the inputs of outputs [first, first + n) of one channel, as phases.
void gather_phases(const Line& l, const float* x, int64_t first, int64_t n, float* to) {
  const int64_t stride = l.w.strides[0], size = l.w.in[0];
  const int64_t begin = first * stride - l.w.pads_begin[0], span = (l.taps() - 1) * l.w.dilations[0];
  for (int64_t s = 0; s < stride; s++, to += l.phase) {
    const int64_t count = n + (span - std::min(span, s)) / stride, from = begin + s;
    // Elements [low, high) are inside the input.
    const int64_t low = std::clamp<int64_t>(from >= 0 ? 0 : (-from + stride - 1) / stride, 0, count);
    const int64_t high = std::clamp<int64_t>(from >= size ? 0 : (size - 1 - from) / stride + 1, low, count);
    std::fill(to, to + low, 0.0f);
    if (stride == 1)
      std::copy(x + from + low, x + from + high, to + low);
    else
      for (int64_t i = low; i < high; i++) to[i] = x[from + i * stride];
    std::fill(to + high, to + count, 0.0f);
  }
}

Match match_line(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (window->rank != 1) return Match::no(cat(window->rank, " spatial dimensions"));
  const ir::Shape &x = m.call.shape("x"), y = m.outputs[0].shape();
  Line l{*window, x[1], y[1], x[1] / window->groups, y[1] / window->groups, 0, {}};
  const int64_t stride = l.w.strides[0], span = (l.taps() - 1) * l.w.dilations[0];
  if (span + stride > kLongest || l.taps() > kLongest) return Match::no("a very long window");
  l.phase = std::min(kChunk, l.w.out[0]) + span / stride + 1;
  for (int64_t t = 0; t < l.taps(); t++) {
    const int64_t reads = t * l.w.dilations[0];
    l.at.push_back(reads % stride * l.phase + reads / stride);
  }
  const int64_t chunks = (l.w.out[0] + kChunk - 1) / kChunk, scratch = stride * l.phase;
  const int in = m.call.arg_index("x"), weight = m.call.arg_index("weight"), bias = m.call.arg_index("bias");
  KernelChoice c;
  c.kernel = "cpu.conv.line";
  c.tiles = y[0] * l.out * chunks;
  c.thread_scratch = static_cast<size_t>(scratch) * sizeof(float);
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 2.0 * static_cast<double>(y.count() * l.per_group * l.taps()), traffic(m));
  c.run = [=, l = std::move(l), after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    float* phases = args.own<float>();
    const float *weights = data_of(args, weight), *shift = data_of(args, bias);
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t first = t % chunks * kChunk, n = std::min(kChunk, l.w.out[0] - first), row = t / chunks;
      const int64_t o = row % l.out, image = row / l.out, group = o / l.outs_per_group;
      float* to = args.out[0].as<float>() + row * l.w.out[0] + first;
      std::fill_n(to, n, shift == nullptr ? 0.0f : shift[o]);
      for (int64_t i = 0; i < l.per_group; i++) {
        const int64_t channel = image * l.in + group * l.per_group + i;
        gather_phases(l, data_of(args, in) + channel * l.w.in[0], first, n, phases);
        vector::loops().filter(phases, l.at.data(), weights + (o * l.per_group + i) * l.taps(), l.taps(), to, n);
      }
      apply_all(after, to, n);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_line() {
  static const KernelDef defs[] = {{.name = "cpu.conv.line", .ops = {"conv"}, .match = match_line, .measured = true}};
  return {160, defs};
}

}  // namespace moka::devices::cpu
