// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "devices/cpu/common/recurrent.h"
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

using ops::Direction;
using vector::Binary;
using vector::loops;
using vector::Unary;

namespace {

/// One direction of the LSTM.
struct Pass {
  GateWeights input, state;
  int bias, peephole;
  bool reverse;
};

using Function = std::optional<Activation>;

/// An LSTM of known sizes, and how its work is divided.
struct Lstm {
  int64_t steps, batch, inputs, hidden;
  bool both;      ///< directions
  bool sequence;  ///< returns the states of all steps
  int in, initial_h, initial_c;
  float clip;
  Function recurrent, cell, activation;
  std::vector<Pass> passes = {};
  int threads = 1, workers = 1;

  int64_t width() const { return hidden * (both ? 2 : 1); }
  Status run(const KernelArgs& args) const;

 private:
  /// What a direction computes with, row-major: gates [steps, batch, 4, hidden], states [2, batch, hidden], cells and
  /// squashed cells.
  struct Memory {
    float *gates, *states, *cells, *squashed;
  };
  /// Steps read one half of `states` and write the other. Units from `from` up to `to`. `y`: of this direction.
  void step(const Pass& pass, const GateWeights::Ready& weights, const float* peephole, const Memory& at, int64_t t,
            int64_t from, int64_t to, float* y) const;
  /// `i`: the gates of one element of the batch; `h`: its new state.
  void update(const float* peephole, float* i, float* c, float* squash, float* h, int64_t n) const;
};

void Lstm::update(const float* peephole, float* i, float* c, float* squash, float* h, int64_t n) const {
  float *f = i + hidden, *o = f + hidden, *fresh = o + hidden;
  if (peephole != nullptr) {
    loops().multiply_add(peephole, c, i, i, n);
    loops().multiply_add(peephole + hidden, c, f, f, n);
  }
  apply(recurrent, i, n);
  apply(recurrent, f, n);
  apply(cell, fresh, n);
  loops().binary(Binary::mul, i, 1, fresh, 1, i, n);
  loops().multiply_add(f, c, i, c, n);
  if (clip != INFINITY) loops().unary(Unary::clip, c, c, n, -clip, clip);
  if (peephole != nullptr) loops().multiply_add(peephole + 2 * hidden, c, o, o, n);
  apply(recurrent, o, n);
  std::copy_n(c, n, squash);
  apply(activation, squash, n);
  loops().binary(Binary::mul, o, 1, squash, 1, h, n);
}

void Lstm::step(const Pass& pass, const GateWeights::Ready& weights, const float* peephole, const Memory& at, int64_t t,
                int64_t from, int64_t to, float* y) const {
  const int64_t n = to - from, place = pass.reverse ? steps - 1 - t : t;
  float* gates = at.gates + place * batch * 4 * hidden;
  weights.add(0, 4, from, to, at.states + t % 2 * batch * hidden, batch, gates, t % 2 != 0);
  for (int64_t b = 0; b < batch; b++) {
    float* h = at.states + ((t + 1) % 2 * batch + b) * hidden + from;
    update(peephole != nullptr ? peephole + from : nullptr, gates + b * 4 * hidden + from, at.cells + b * hidden + from,
           at.squashed + from, h, n);
    if (sequence) std::copy_n(h, n, y + ((both ? place : t) * batch + b) * width() + from);
  }
}

Status Lstm::run(const KernelArgs& args) const {
  Memory at;
  at.gates = reinterpret_cast<float*>(args.scratch);
  at.states = at.gates + steps * batch * 4 * hidden;
  at.cells = at.states + 2 * batch * hidden;
  at.squashed = at.cells + batch * hidden;
  float *y = args.out[0].as<float>(), *last_h = args.out[1].as<float>(), *last_c = args.out[2].as<float>();
  for (size_t p = 0; p < passes.size(); p++) {
    const Pass& pass = passes[p];
    const GateWeights::Ready weights = pass.state.ready();
    pass.input.ready().project(data_of(args, in), data_of(args, pass.bias), steps * batch, at.gates, threads);
    const float* peephole = data_of(args, pass.peephole);
    const auto of_batch = [&](int64_t b) { return b * width() + static_cast<int64_t>(p) * hidden; };
    for (int64_t b = 0; b < batch; b++) {
      std::copy_n(data_of(args, initial_h) + of_batch(b), hidden, at.states + b * hidden);
      std::copy_n(data_of(args, initial_c) + of_batch(b), hidden, at.cells + b * hidden);
    }
    divide_units(workers, hidden, [&](int64_t from, int64_t to, auto wait) {
      for (int64_t t = 0; t < steps; t++) {
        if (from < to) step(pass, weights, peephole, at, t, from, to, y + of_batch(0));
        wait();
      }
    });
    for (int64_t b = 0; b < batch; b++) {
      const float* h = at.states + (steps % 2 * batch + b) * hidden;
      if (!sequence) std::copy_n(h, hidden, y + of_batch(b));
      std::copy_n(h, hidden, last_h + of_batch(b));
      std::copy_n(at.cells + b * hidden, hidden, last_c + of_batch(b));
    }
  }
  return {};
}

Match match_lstm(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "initial_h", "initial_c", "weight_ih", "weight_hh", "bias", "peephole"});
      !why.empty())
    return Match::no(why);
  for (const char* p : {"weight_ih", "weight_hh", "weight_ih_back", "weight_hh_back"})
    if (m.call.has(p) && !m.is_constant(p)) return Match::no("weights that are not constant");
  auto direction = ops::direction_of(m.call, true);
  auto recurrent = ops::gate_of(m.call, "recurrent_activation"), cell = ops::gate_of(m.call, "cell_activation"),
       activation = ops::gate_of(m.call, "activation");
  auto all = m.call.flag("output_sequence");
  if (!direction.ok() || !recurrent.ok() || !cell.ok() || !activation.ok() || !all.ok())
    return Match::no("settings that are not constant");
  float clip = INFINITY;
  if (m.call.has("clip")) {
    auto v = m.call.number("clip");
    if (!v.ok()) return Match::no("a clip that is not constant");
    clip = static_cast<float>(*v);
  }
  const ir::Shape& x = m.call.shape("x");
  Lstm lstm{x[0],
            x[1],
            x[2],
            m.call.shape("weight_hh")[1],
            *direction == Direction::bidirectional,
            *all,
            m.call.arg_index("x"),
            m.call.arg_index("initial_h"),
            m.call.arg_index("initial_c"),
            clip,
            activation_of_gate(*recurrent),
            activation_of_gate(*cell),
            activation_of_gate(*activation)};
  KernelChoice c;
  for (const std::string back : {"", "_back"}) {
    if (!back.empty() && !lstm.both) continue;
    lstm.passes.push_back({GateWeights::of_input(m, c, "weight_ih" + back),
                           GateWeights::of_state(m, c, "weight_hh" + back, 4), m.call.arg_index("bias" + back),
                           m.call.arg_index("peephole" + back), *direction == Direction::reverse || !back.empty()});
  }
  const int64_t rows = lstm.steps * lstm.batch;
  const double flops = 2.0 * static_cast<double>(lstm.passes.size()) * static_cast<double>(rows * 4 * lstm.hidden) *
                       static_cast<double>(lstm.inputs + lstm.hidden);
  lstm.threads = with_threads_for(m, flops).threads;
  lstm.workers = threads_for_steps(m, lstm.passes[0].state, lstm.hidden);
  c.kernel = "cpu.lstm";
  c.internally_parallel = true;
  c.scratch = static_cast<size_t>(rows * 4 * lstm.hidden + 3 * lstm.batch * lstm.hidden + lstm.hidden) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  c.run = [lstm = std::move(lstm)](const KernelArgs& args) { return lstm.run(args); };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_lstm() {
  static const KernelDef defs[] = {{.name = "cpu.lstm", .ops = {"lstm"}, .match = match_lstm}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
