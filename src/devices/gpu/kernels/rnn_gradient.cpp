// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/recurrent.h"
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

struct RnnGradientParams {
  uint32_t count;
  float a, b;
};

/// Walks a plain recurrent layer backwards.
struct RnnBack {
  StepProducts steps;
  int x_gates, weight_hh, initial_h, y, dy, dh;
  Function function;

  Status record(Recorder& recorder, const RecordArgs& args) const;

 private:
  Status dispatch(Recorder& recorder, const RecordArgs& args, bool is_forward, int64_t t) const;
};

Status RnnBack::dispatch(Recorder& recorder, const RecordArgs& args, bool is_forward, int64_t t) const {
  const int64_t n = steps.state();
  const Use gates = Use::write(args.out[0]).part(t * n, n);
  const bool has_next = is_forward && t + 1 < steps.steps, has_dy = !is_forward && dy >= 0;
  return recorder_of(recorder).dispatch(
      "rnn_gradient_f32", {is_forward, function.number, has_next, has_dy},
      {gates, has_next ? Use::write(args.out[2]).part((t + 1) * n, n) : gates.unused(),
       is_forward ? gates.unused() : Use::write(args.out[1]).to_read(),
       has_dy ? Use::read(view(args.in, dy)).part(t * n, n) : gates.unused()},
      RnnGradientParams{u32(n), function.a, function.b}, steps.lines());
}

Status RnnBack::record(Recorder& recorder, const RecordArgs& args) const {
  const StepProducts& s = steps;
  const auto in = [&](int i) { return Use::read(view(args.in, i)); };
  const Use gates = Use::write(args.out[0]), to = Use::write(args.out[1]), states = Use::write(args.out[2]);
  const auto step_of = [&](const Use& all, int64_t t) { return all.part(t * s.state(), s.state()); };
  copy_states(recorder, s, in(initial_h), optional_use(args, y), states);
  recorder_of(recorder).copy(in(dh), to);
  if (y >= 0) recorder_of(recorder).copy(in(y), gates);
  for (int64_t t = 0; y < 0 && t < s.steps; t++) {
    MOKA_TRY(s.ahead(recorder, s.batch, 0, 1, step_of(states, t), in(weight_hh), {}, step_of(in(x_gates), t),
                     step_of(gates, t)));
    MOKA_TRY(dispatch(recorder, args, true, t));
  }
  for (int64_t t = s.steps - 1; t >= 0; t--) {
    MOKA_TRY(dispatch(recorder, args, false, t));
    MOKA_TRY(s.back(recorder, 0, 1, step_of(gates, t), in(weight_hh), {}, to));
  }
  return {};
}

Match match_rnn_gradient(const MatchCall& m) {
  std::string refusal;
  const auto steps = step_products(m, 1, {"x_gates", "weight_hh", "initial_h", "y", "dy", "dh"}, refusal);
  if (!steps) return Match::no(refusal);
  const auto activation = ops::gate_of(m.call, "activation");
  if (!activation.ok()) return Match::no("a parameter that is not constant");
  const auto at = [&](std::string_view p) { return m.call.has(p) ? m.call.arg_index(p) : -1; };
  const RnnBack back{*steps,  at("x_gates"), at("weight_hh"), at("initial_h"),
                     at("y"), at("dy"),      at("dh"),        function_of(*activation)};
  KernelChoice c = choice_of(m, "rnn_gradient", {"x_gates", "weight_hh", "initial_h", "y", "dy", "dh"});
  set_cost(c, m, steps->multiply_adds());
  c.cost += static_cast<double>(steps->steps) * 8e-6;
  c.record = [back](Recorder& recorder, const RecordArgs& args) { return back.record(recorder, args); };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_rnn_gradient() {
  static const KernelDef defs[] = {{"rnn_gradient", {"moka_rnn_gradient"}, match_rnn_gradient}};
  return {defs};
}

}  // namespace moka::devices::gpu
