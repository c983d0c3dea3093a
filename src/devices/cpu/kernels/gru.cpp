#include "devices/cpu/common/recurrent.h"
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

using ops::Direction;
using vector::Binary;
using vector::loops;

namespace {

Match match_gru(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "initial_h", "weight_ih", "weight_hh", "bias"}); !why.empty())
    return Match::no(why);
  if (!m.is_constant("weight_ih") || !m.is_constant("weight_hh")) return Match::no("weights that are not constant");
  auto direction = ops::direction_of(m.call, false);
  auto recurrent = ops::gate_of(m.call, "recurrent_activation"), activation = ops::gate_of(m.call, "activation");
  auto all = m.call.flag("output_sequence");
  if (!direction.ok() || !recurrent.ok() || !activation.ok() || !all.ok())
    return Match::no("settings that are not constant");
  const bool newer = m.call.version().param_index("reset_after") >= 0;
  bool after = false;
  if (newer) {
    auto v = m.call.flag("reset_after");
    if (!v.ok()) return Match::no("settings that are not constant");
    after = *v;
  }
  const ir::Shape& x = m.call.shape("x");
  const int64_t steps = x[0], batch = x[1], inputs = x[2], hidden = m.call.shape("weight_hh")[1];
  const bool reverse = *direction == Direction::reverse;
  const int in = m.call.arg_index("x"), initial_h = m.call.arg_index("initial_h"), bias = m.call.arg_index("bias"),
            input_bias = newer ? m.call.arg_index("input_bias") : -1;
  KernelChoice c;
  const GateWeights input = GateWeights::of_input(m, c, "weight_ih"),
                    state = GateWeights::of_state(m, c, "weight_hh", 3);
  const double flops = 2.0 * static_cast<double>(steps * batch * 3 * hidden) * static_cast<double>(inputs + hidden);
  c.kernel = "cpu.gru";
  c.internally_parallel = true;
  c.scratch = static_cast<size_t>(steps * batch * 3 * hidden + 6 * batch * hidden) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  c.run = [=, sequence = *all, threads = with_threads_for(m, flops).threads,
           workers = threads_for_steps(m, state, hidden), recurrent = activation_of_gate(*recurrent),
           activation = activation_of_gate(*activation)](const KernelArgs& args) -> Status {
    auto* gates = reinterpret_cast<float*>(args.scratch);
    float *const states = gates + steps * batch * 3 * hidden, *const from_state = states + 2 * batch * hidden,
                 *const kept = from_state + 3 * batch * hidden;
    const GateWeights::Ready w = state.ready();
    input.ready().project(data_of(args, in), data_of(args, input_bias), steps * batch, gates, threads);
    const float* b_h = data_of(args, bias);
    float *y = args.out[0].as<float>(), *last = args.out[1].as<float>();
    std::copy_n(data_of(args, initial_h), batch * hidden, states);
    auto step = [&](int64_t t, int64_t from, int64_t to, auto wait) {
      constexpr float one = 1;
      const int64_t n = to - from;
      const float* before = states + t % 2 * batch * hidden;
      float *now = states + (t + 1) % 2 * batch * hidden,
            *z = gates + (reverse ? steps - 1 - t : t) * batch * 3 * hidden;
      const bool backwards = t % 2 != 0;
      for (int64_t row = 0; row < 3 * batch; row++) {
        float* to_row = from_state + row * hidden + from;
        if (b_h == nullptr)
          std::fill_n(to_row, n, 0.0f);
        else
          std::copy_n(b_h + row % 3 * hidden + from, n, to_row);
      }
      w.add(0, 1, from, to, before, batch, from_state, backwards);
      w.add(2, 3, from, to, before, batch, from_state, backwards);
      for (int64_t b = 0; b < batch; b++) {
        float *reset = z + b * 3 * hidden + from, *update = reset + 2 * hidden;
        const float* added = from_state + b * 3 * hidden + from;
        loops().binary(Binary::add, reset, 1, added, 1, reset, n);
        loops().binary(Binary::add, update, 1, added + 2 * hidden, 1, update, n);
        apply(recurrent, reset, n);
        apply(recurrent, update, n);
        if (!after) loops().binary(Binary::mul, reset, 1, before + b * hidden + from, 1, kept + b * hidden + from, n);
      }
      if (!after) wait();
      w.add(1, 2, from, to, after ? before : kept, batch, from_state, backwards);
      for (int64_t b = 0; b < batch; b++) {
        float *reset = z + b * 3 * hidden + from, *fresh = reset + hidden, *update = fresh + hidden;
        const float* added = from_state + (b * 3 + 1) * hidden + from;
        float* h = now + b * hidden + from;
        if (after)
          loops().multiply_add(reset, added, fresh, fresh, n);
        else
          loops().binary(Binary::add, fresh, 1, added, 1, fresh, n);
        apply(activation, fresh, n);
        // (1 - update) * fresh + update * h. Shorter forms lose h beside a large `fresh`.
        loops().binary(Binary::mul, update, 1, before + b * hidden + from, 1, h, n);
        loops().binary(Binary::sub, &one, 0, update, 1, update, n);
        loops().multiply_add(update, fresh, h, h, n);
        if (sequence) std::copy_n(h, n, y + (t * batch + b) * hidden + from);
      }
    };
    divide_units(workers, hidden, [&](int64_t from, int64_t to, auto wait) {
      for (int64_t t = 0; t < steps; t++) {
        step(t, from, to, wait);
        wait();
      }
    });
    const float* h = states + steps % 2 * batch * hidden;
    if (!sequence) std::copy_n(h, batch * hidden, y);
    std::copy_n(h, batch * hidden, last);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_gru() {
  static const KernelDef defs[] = {{.name = "cpu.gru", .ops = {"gru"}, .match = match_gru}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
