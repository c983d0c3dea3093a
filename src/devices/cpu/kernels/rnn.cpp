// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/recurrent.h"
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

using ops::Direction;

namespace {

Match match_rnn(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "initial_h", "weight_ih", "weight_hh", "bias"}); !why.empty())
    return Match::no(why);
  if (!m.is_constant("weight_ih") || !m.is_constant("weight_hh")) return Match::no("weights that are not constant");
  auto direction = ops::direction_of(m.call, false);
  auto activation = ops::gate_of(m.call, "activation");
  auto all = m.call.flag("output_sequence");
  if (!direction.ok() || !activation.ok() || !all.ok()) return Match::no("settings that are not constant");
  const ir::Shape& x = m.call.shape("x");
  const int64_t steps = x[0], batch = x[1], inputs = x[2], hidden = m.call.shape("weight_hh")[1];
  const bool reverse = *direction == Direction::reverse;
  const int in = m.call.arg_index("x"), initial_h = m.call.arg_index("initial_h"), bias = m.call.arg_index("bias");
  KernelChoice c;
  const GateWeights input = GateWeights::of_input(m, c, "weight_ih"),
                    state = GateWeights::of_state(m, c, "weight_hh", 1);
  const double flops = 2.0 * static_cast<double>(steps * batch * hidden) * static_cast<double>(inputs + hidden);
  c.kernel = "cpu.rnn";
  c.internally_parallel = true;
  c.scratch = static_cast<size_t>(steps * batch * hidden) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  c.run = [=, sequence = *all, threads = with_threads_for(m, flops).threads,
           workers = threads_for_steps(m, state, hidden),
           activation = activation_of_gate(*activation)](const KernelArgs& args) -> Status {
    // The products with x become the states of their steps.
    auto* const states = reinterpret_cast<float*>(args.scratch);
    const GateWeights::Ready w = state.ready();
    input.ready().project(data_of(args, in), data_of(args, bias), steps * batch, states, threads);
    float *y = args.out[0].as<float>(), *last = args.out[1].as<float>();
    const auto state_of = [=](int64_t t) { return states + (reverse ? steps - 1 - t : t) * batch * hidden; };
    divide_units(workers, hidden, [&](int64_t from, int64_t to, auto wait) {
      for (int64_t t = 0; t < steps; t++) {
        float* now = state_of(t);
        if (from < to)
          w.add(0, 1, from, to, t == 0 ? data_of(args, initial_h) : state_of(t - 1), batch, now, t % 2 != 0);
        for (int64_t b = 0; b < batch && from < to; b++) {
          float* h = now + b * hidden + from;
          apply(activation, h, to - from);
          if (sequence) std::copy_n(h, to - from, y + (t * batch + b) * hidden + from);
        }
        wait();
      }
    });
    const float* h = state_of(steps - 1);
    if (!sequence) std::copy_n(h, batch * hidden, y);
    std::copy_n(h, batch * hidden, last);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_rnn() {
  static const KernelDef defs[] = {{.name = "cpu.rnn", .ops = {"rnn"}, .match = match_rnn}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
