// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/recurrent.h"
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

using ops::Direction;
using vector::Binary;
using vector::loops;

namespace {

/// A GRU of known sizes, and how its work is divided.
struct Gru {
  int64_t steps, batch, inputs, hidden;
  bool reverse;
  bool sequence;  ///< returns the states of all steps
  bool after;     ///< the reset gate multiplies the product with the state, not the state
  int in, initial_h, bias, input_bias;
  std::optional<Activation> recurrent, activation;
  GateWeights input, state;
  int threads = 1, workers = 1;

  Status run(const KernelArgs& args) const;

 private:
  /// Row-major: gates [steps, batch, 3, hidden], states [2, batch, hidden], products with the state
  /// [batch, 3, hidden], and states times the reset gate.
  struct Memory {
    float *gates, *states, *from_state, *kept;
  };
  /// Units from `from` up to `to`. `wait`: until all threads have come here.
  template <class Wait>
  void step(const GateWeights::Ready& weights, const float* b_h, const Memory& at, int64_t t, int64_t from, int64_t to,
            float* y, Wait wait) const;
  /// The reset and update gates.
  void open_gates(const Memory& at, const float* before, float* z, int64_t from, int64_t n) const;
  /// The state `now` from the gates and the state `before`.
  void update(const Memory& at, const float* before, float* z, float* now, int64_t from, int64_t n) const;
};

void Gru::open_gates(const Memory& at, const float* before, float* z, int64_t from, int64_t n) const {
  for (int64_t b = 0; b < batch; b++) {
    float *reset = z + b * 3 * hidden + from, *update = reset + 2 * hidden;
    const float* added = at.from_state + b * 3 * hidden + from;
    loops().binary(Binary::add, reset, 1, added, 1, reset, n);
    loops().binary(Binary::add, update, 1, added + 2 * hidden, 1, update, n);
    apply(recurrent, reset, n);
    apply(recurrent, update, n);
    if (!after) loops().binary(Binary::mul, reset, 1, before + b * hidden + from, 1, at.kept + b * hidden + from, n);
  }
}

void Gru::update(const Memory& at, const float* before, float* z, float* now, int64_t from, int64_t n) const {
  constexpr float one = 1;
  for (int64_t b = 0; b < batch; b++) {
    float *reset = z + b * 3 * hidden + from, *fresh = reset + hidden, *update = fresh + hidden;
    const float* added = at.from_state + (b * 3 + 1) * hidden + from;
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
  }
}

template <class Wait>
void Gru::step(const GateWeights::Ready& weights, const float* b_h, const Memory& at, int64_t t, int64_t from,
               int64_t to, float* y, Wait wait) const {
  const int64_t n = to - from;
  const float* before = at.states + t % 2 * batch * hidden;
  float *now = at.states + (t + 1) % 2 * batch * hidden,
        *z = at.gates + (reverse ? steps - 1 - t : t) * batch * 3 * hidden;
  const bool backwards = t % 2 != 0;
  for (int64_t row = 0; row < 3 * batch; row++) {
    float* to_row = at.from_state + row * hidden + from;
    if (b_h == nullptr)
      std::fill_n(to_row, n, 0.0f);
    else
      std::copy_n(b_h + row % 3 * hidden + from, n, to_row);
  }
  weights.add(0, 1, from, to, before, batch, at.from_state, backwards);
  weights.add(2, 3, from, to, before, batch, at.from_state, backwards);
  open_gates(at, before, z, from, n);
  if (!after) wait();
  weights.add(1, 2, from, to, after ? before : at.kept, batch, at.from_state, backwards);
  update(at, before, z, now, from, n);
  for (int64_t b = 0; sequence && b < batch; b++)
    std::copy_n(now + b * hidden + from, n, y + (t * batch + b) * hidden + from);
}

Status Gru::run(const KernelArgs& args) const {
  Memory at;
  at.gates = reinterpret_cast<float*>(args.scratch);
  at.states = at.gates + steps * batch * 3 * hidden;
  at.from_state = at.states + 2 * batch * hidden;
  at.kept = at.from_state + 3 * batch * hidden;
  const GateWeights::Ready weights = state.ready();
  input.ready().project(data_of(args, in), data_of(args, input_bias), steps * batch, at.gates, threads);
  const float* b_h = data_of(args, bias);
  float *y = args.out[0].as<float>(), *last = args.out[1].as<float>();
  std::copy_n(data_of(args, initial_h), batch * hidden, at.states);
  divide_units(workers, hidden, [&](int64_t from, int64_t to, auto wait) {
    for (int64_t t = 0; t < steps; t++) {
      step(weights, b_h, at, t, from, to, y, wait);
      wait();
    }
  });
  const float* h = at.states + steps % 2 * batch * hidden;
  if (!sequence) std::copy_n(h, batch * hidden, y);
  std::copy_n(h, batch * hidden, last);
  return {};
}

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
  KernelChoice c;
  Gru gru{x[0],
          x[1],
          x[2],
          m.call.shape("weight_hh")[1],
          *direction == Direction::reverse,
          *all,
          after,
          m.call.arg_index("x"),
          m.call.arg_index("initial_h"),
          m.call.arg_index("bias"),
          newer ? m.call.arg_index("input_bias") : -1,
          activation_of_gate(*recurrent),
          activation_of_gate(*activation),
          GateWeights::of_input(m, c, "weight_ih"),
          GateWeights::of_state(m, c, "weight_hh", 3)};
  const int64_t rows = gru.steps * gru.batch;
  const double flops = 2.0 * static_cast<double>(rows * 3 * gru.hidden) * static_cast<double>(gru.inputs + gru.hidden);
  gru.threads = with_threads_for(m, flops).threads;
  gru.workers = threads_for_steps(m, gru.state, gru.hidden);
  c.kernel = "cpu.gru";
  c.internally_parallel = true;
  c.scratch = static_cast<size_t>(rows * 3 * gru.hidden + 6 * gru.batch * gru.hidden) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  c.run = [gru = std::move(gru)](const KernelArgs& args) { return gru.run(args); };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_gru() {
  static const KernelDef defs[] = {{.name = "cpu.gru", .ops = {"gru"}, .match = match_gru}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
