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
  const int64_t steps = x[0], batch = x[1], inputs = x[2], hidden = m.call.shape("weight_hh")[1];
  const bool both = *direction == Direction::bidirectional;
  KernelChoice c;
  std::vector<Pass> passes;
  for (const std::string back : {"", "_back"}) {
    if (!back.empty() && !both) continue;
    passes.push_back({GateWeights::of_input(m, c, "weight_ih" + back),
                      GateWeights::of_state(m, c, "weight_hh" + back, 4), m.call.arg_index("bias" + back),
                      m.call.arg_index("peephole" + back), *direction == Direction::reverse || !back.empty()});
  }
  const double flops = 2.0 * static_cast<double>(passes.size()) * static_cast<double>(steps * batch * 4 * hidden) *
                       static_cast<double>(inputs + hidden);
  const int in = m.call.arg_index("x"), initial_h = m.call.arg_index("initial_h"),
            initial_c = m.call.arg_index("initial_c");
  const int64_t width = hidden * (both ? 2 : 1);
  c.kernel = "cpu.lstm";
  c.internally_parallel = true;
  c.scratch = static_cast<size_t>(steps * batch * 4 * hidden + 3 * batch * hidden + hidden) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  c.run = [=, sequence = *all, threads = with_threads_for(m, flops).threads,
           workers = threads_for_steps(m, passes[0].state, hidden), recurrent = activation_of_gate(*recurrent),
           cell = activation_of_gate(*cell),
           activation = activation_of_gate(*activation)](const KernelArgs& args) -> Status {
    auto* gates = reinterpret_cast<float*>(args.scratch);
    float *const states = gates + steps * batch * 4 * hidden, *const cells = states + 2 * batch * hidden,
                 *const squashed = cells + batch * hidden;
    float *y = args.out[0].as<float>(), *last_h = args.out[1].as<float>(), *last_c = args.out[2].as<float>();
    for (size_t p = 0; p < passes.size(); p++) {
      const Pass& pass = passes[p];
      const GateWeights::Ready w = pass.state.ready();
      pass.input.ready().project(data_of(args, in), data_of(args, pass.bias), steps * batch, gates, threads);
      const float* peep = data_of(args, pass.peephole);
      auto of_batch = [&](int64_t b) { return b * width + static_cast<int64_t>(p) * hidden; };
      for (int64_t b = 0; b < batch; b++) {
        std::copy_n(data_of(args, initial_h) + of_batch(b), hidden, states + b * hidden);
        std::copy_n(data_of(args, initial_c) + of_batch(b), hidden, cells + b * hidden);
      }
      // Steps read one half of `states` and write the other.
      auto step = [&](int64_t t, int64_t from, int64_t to) {
        const int64_t n = to - from, at = pass.reverse ? steps - 1 - t : t;
        w.add(0, 4, from, to, states + t % 2 * batch * hidden, batch, gates + at * batch * 4 * hidden, t % 2 != 0);
        for (int64_t b = 0; b < batch; b++) {
          float *h = states + ((t + 1) % 2 * batch + b) * hidden + from, *c = cells + b * hidden + from,
                *squash = squashed + from;
          float *i = gates + (at * batch + b) * 4 * hidden + from, *f = i + hidden, *o = f + hidden,
                *fresh = o + hidden;
          if (peep != nullptr) {
            loops().multiply_add(peep + from, c, i, i, n);
            loops().multiply_add(peep + hidden + from, c, f, f, n);
          }
          apply(recurrent, i, n);
          apply(recurrent, f, n);
          apply(cell, fresh, n);
          loops().binary(Binary::mul, i, 1, fresh, 1, i, n);
          loops().multiply_add(f, c, i, c, n);
          if (clip != INFINITY) loops().unary(Unary::clip, c, c, n, -clip, clip);
          if (peep != nullptr) loops().multiply_add(peep + 2 * hidden + from, c, o, o, n);
          apply(recurrent, o, n);
          std::copy_n(c, n, squash);
          apply(activation, squash, n);
          loops().binary(Binary::mul, o, 1, squash, 1, h, n);
          if (sequence) std::copy_n(h, n, y + (both ? at : t) * batch * width + of_batch(b) + from);
        }
      };
      divide_units(workers, hidden, [&](int64_t from, int64_t to, auto wait) {
        for (int64_t t = 0; t < steps; t++) {
          if (from < to) step(t, from, to);
          wait();
        }
      });
      for (int64_t b = 0; b < batch; b++) {
        const float* h = states + (steps % 2 * batch + b) * hidden;
        if (!sequence) std::copy_n(h, hidden, y + of_batch(b));
        std::copy_n(h, hidden, last_h + of_batch(b));
        std::copy_n(cells + b * hidden, hidden, last_c + of_batch(b));
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_lstm() {
  static const KernelDef defs[] = {{.name = "cpu.lstm", .ops = {"lstm"}, .match = match_lstm}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
