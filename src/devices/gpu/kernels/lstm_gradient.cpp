// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "devices/gpu/common/recurrent.h"
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

/// Parameters of shaders/lstm_gradient.comp. The dispatch computes steps [first, first + count).
struct LstmGradientParams {
  uint32_t hidden, batch, steps, first, count;
  float clip;
  std::array<float, 3> a, b;
};

/// Walks an LSTM backwards. Where the states are known, one product serves all steps, and one dispatch computes all
/// gates from it.
struct LstmBack {
  StepProducts steps;
  int x_gates, weight_hh, initial_h, y, dy, dh, initial_c, peephole, dc;
  std::array<Function, 3> functions;
  bool is_coupled = false;
  float clip = std::numeric_limits<float>::infinity();

  int64_t scratch() const { return (steps.steps + 1) * steps.state(); }
  Status record(Recorder& recorder, const RecordArgs& args) const;

 private:
  Status dispatch(Recorder& recorder, const RecordArgs& args, uint32_t stage, int64_t first, int64_t count) const;
};

Status LstmBack::dispatch(Recorder& recorder, const RecordArgs& args, uint32_t stage, int64_t first,
                          int64_t count) const {
  const Use gates = Use::write(args.out[0]), cells = scratch_of(args, scratch()), dy_of = optional_use(args, dy);
  const bool is_forward = stage == LSTM_FORWARD, is_backward = stage == LSTM_BACKWARD;
  const auto& f = functions;
  const Groups groups =
      stage == LSTM_PEEPHOLE ? CommandRecorder::lines(static_cast<uint64_t>(3 * steps.hidden)) : steps.lines();
  return recorder_of(recorder).dispatch(
      "lstm_gradient_f32", {stage, f[0].number, f[1].number, f[2].number, peephole >= 0, is_coupled, y < 0, dy >= 0},
      {stage == LSTM_PEEPHOLE ? gates.to_read() : gates, is_forward ? cells : cells.to_read(),
       or_unused(optional_use(args, peephole), gates), is_forward && y < 0 ? Use::write(args.out[4]) : gates.unused(),
       is_backward ? Use::write(args.out[1]).to_read() : gates.unused(),
       is_backward ? Use::write(args.out[2]) : gates.unused(), is_backward ? or_unused(dy_of, gates) : gates.unused(),
       stage == LSTM_PEEPHOLE ? Use::write(args.out[3]) : gates.unused()},
      LstmGradientParams{u32(steps.hidden),
                         u32(steps.batch),
                         u32(steps.steps),
                         u32(first),
                         u32(count),
                         clip,
                         {f[0].a, f[1].a, f[2].a},
                         {f[0].b, f[1].b, f[2].b}},
      groups);
}

Status LstmBack::record(Recorder& recorder, const RecordArgs& args) const {
  const StepProducts& s = steps;
  const auto in = [&](int i) { return Use::read(view(args.in, i)); };
  const Use gates = Use::write(args.out[0]), states = Use::write(args.out[4]);
  copy_states(recorder, s, in(initial_h), optional_use(args, y), states);
  recorder_of(recorder).copy(in(initial_c), scratch_of(args, scratch()).part(0, s.state()));
  recorder_of(recorder).copy(in(dh), Use::write(args.out[1]));
  recorder_of(recorder).copy(in(dc), Use::write(args.out[2]));
  const int64_t at_once = y < 0 ? 1 : s.steps;
  for (int64_t t = 0; t < s.steps; t += at_once) {
    const auto part = [&](const Use& all, int64_t step) { return all.part(t * step, at_once * step); };
    MOKA_TRY(s.ahead(recorder, at_once * s.batch, 0, 4, part(states, s.state()), in(weight_hh), {},
                     part(in(x_gates), s.step_gates()), part(gates, s.step_gates())));
    MOKA_TRY(dispatch(recorder, args, LSTM_FORWARD, t, at_once));
  }
  for (int64_t t = s.steps - 1; t >= 0; t--) {
    MOKA_TRY(dispatch(recorder, args, LSTM_BACKWARD, t, 1));
    MOKA_TRY(s.back(recorder, 0, 4, gates.part(t * s.step_gates(), s.step_gates()), in(weight_hh), {},
                    Use::write(args.out[1])));
  }
  return dispatch(recorder, args, LSTM_PEEPHOLE, 0, s.steps);
}

Match match_lstm_gradient(const MatchCall& m) {
  std::string refusal;
  const auto steps = step_products(
      m, 4, {"x_gates", "weight_hh", "initial_h", "y", "dy", "dh", "initial_c", "peephole", "dc"}, refusal);
  if (!steps) return Match::no(refusal);
  const auto recurrent = ops::recurrent_gate_of(m.call);
  const auto cell = ops::gate_of(m.call, "cell_activation"), activation = ops::gate_of(m.call, "activation");
  if (!recurrent.ok() || !cell.ok() || !activation.ok()) return Match::no("a parameter that is not constant");
  const auto at = [&](std::string_view p) { return m.call.has(p) ? m.call.arg_index(p) : -1; };
  LstmBack back{*steps,
                at("x_gates"),
                at("weight_hh"),
                at("initial_h"),
                at("y"),
                at("dy"),
                at("dh"),
                at("initial_c"),
                at("peephole"),
                at("dc"),
                {function_of(recurrent->gate), function_of(*cell), function_of(*activation)},
                recurrent->is_coupled};
  if (m.call.has("clip")) {
    const auto clip = m.call.number("clip");
    if (!clip.ok()) return Match::no("a parameter that is not constant");
    back.clip = static_cast<float>(*clip);
  }
  KernelChoice c = choice_of(m, "lstm_gradient",
                             {"x_gates", "weight_hh", "initial_h", "y", "dy", "dh", "initial_c", "peephole", "dc"});
  c.scratch = static_cast<size_t>(back.scratch()) * 4;
  set_cost(c, m, steps->multiply_adds());
  c.cost += static_cast<double>(steps->steps) * 8e-6;
  c.record = [back](Recorder& recorder, const RecordArgs& args) { return back.record(recorder, args); };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_lstm_gradient() {
  static const KernelDef defs[] = {{"lstm_gradient", {"moka_lstm_gradient"}, match_lstm_gradient}};
  return {defs};
}

}  // namespace moka::devices::gpu
