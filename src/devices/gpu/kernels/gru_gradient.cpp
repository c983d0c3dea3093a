// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/recurrent.h"
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

/// Parameters of shaders/gru_gradient.comp. The dispatch computes `rows` rows of all steps from `first` on.
struct GruGradientParams {
  uint32_t hidden, batch, steps, first, rows;
  std::array<float, 2> a, b;
};

/// Walks a GRU backwards. Where the states are known, a product serves all steps.
struct GruBack {
  StepProducts steps;
  bool after;
  int x_gates, weight_hh, initial_h, bias, y, dy, dh;
  std::array<Function, 2> functions;

  int64_t scratch() const { return 2 * steps.state(); }
  Status record(Recorder& recorder, const RecordArgs& args) const;

 private:
  Status forward(Recorder& recorder, const RecordArgs& args, int64_t t, int64_t count) const;
  Status backward(Recorder& recorder, const RecordArgs& args, int64_t t) const;
  Status dispatch(Recorder& recorder, const RecordArgs& args, uint32_t stage, int64_t t, int64_t count) const;
  Use carry(const RecordArgs& args) const { return scratch_of(args, scratch()).part(0, steps.state()); }
  Use other(const RecordArgs& args) const { return scratch_of(args, scratch()).part(steps.state(), steps.state()); }
};

Status GruBack::dispatch(Recorder& recorder, const RecordArgs& args, uint32_t stage, int64_t t, int64_t count) const {
  const bool is_forward = stage <= GRU_NEW, is_start = stage == GRU_BACKWARD;
  const Use gates = Use::write(args.out[0]), products = Use::write(args.out[1]), states = Use::write(args.out[3]);
  const auto& f = functions;
  const int64_t rows = count * steps.batch;
  Use kept = gates.unused();
  if (stage == GRU_GATES || stage == GRU_WHOLE) kept = Use::write(args.out[4]);
  if (stage == GRU_RESET) kept = other(args).to_read();
  return recorder_of(recorder).dispatch(
      "gru_gradient_f32", {stage, f[0].number, f[1].number, after, y < 0, dy >= 0},
      {is_forward ? Use::read(view(args.in, x_gates)) : gates.unused(), gates,
       is_forward ? products.to_read() : products,
       is_forward && stage != GRU_GATES && y < 0 ? states : states.to_read(), kept,
       is_start ? Use::write(args.out[2]).to_read() : gates.unused(), is_forward ? gates.unused() : carry(args),
       is_start ? or_unused(optional_use(args, dy), gates) : gates.unused()},
      GruGradientParams{u32(steps.hidden),
                        u32(steps.batch),
                        u32(steps.steps),
                        u32(t * steps.batch),
                        u32(rows),
                        {f[0].a, f[1].a},
                        {f[0].b, f[1].b}},
      CommandRecorder::lines(static_cast<uint64_t>(rows * steps.hidden)));
}

Status GruBack::forward(Recorder& recorder, const RecordArgs& args, int64_t t, int64_t count) const {
  const StepProducts& s = steps;
  const auto part = [&](const Use& all, int64_t step) { return all.part(t * step, count * step); };
  const Use weight = Use::read(view(args.in, weight_hh)), biases = optional_use(args, bias);
  const Use h = part(Use::write(args.out[3]), s.state()), z = part(Use::write(args.out[1]), s.step_gates());
  const int64_t rows = count * s.batch;
  if (after) {
    MOKA_TRY(s.ahead(recorder, rows, 0, 3, h, weight, biases, {}, z));
    return dispatch(recorder, args, GRU_WHOLE, t, count);
  }
  for (const int gate : {0, 2}) MOKA_TRY(s.ahead(recorder, rows, gate, 1, h, weight, biases, {}, z));
  MOKA_TRY(dispatch(recorder, args, GRU_GATES, t, count));
  MOKA_TRY(s.ahead(recorder, rows, 1, 1, part(Use::write(args.out[4]), s.state()), weight, biases, {}, z));
  return dispatch(recorder, args, GRU_NEW, t, count);
}

Status GruBack::backward(Recorder& recorder, const RecordArgs& args, int64_t t) const {
  const StepProducts& s = steps;
  const Use weight = Use::read(view(args.in, weight_hh)), to = Use::write(args.out[2]),
            dz = Use::write(args.out[1]).part(t * s.step_gates(), s.step_gates());
  MOKA_TRY(dispatch(recorder, args, GRU_BACKWARD, t, 1));
  if (after) return s.back(recorder, 0, 3, dz, weight, carry(args), to);
  MOKA_TRY(s.back(recorder, 1, 1, dz, weight, {}, other(args)));
  MOKA_TRY(dispatch(recorder, args, GRU_RESET, t, 1));
  MOKA_TRY(s.back(recorder, 0, 1, dz, weight, carry(args), other(args)));
  return s.back(recorder, 2, 1, dz, weight, other(args), to);
}

Status GruBack::record(Recorder& recorder, const RecordArgs& args) const {
  copy_states(recorder, steps, Use::read(view(args.in, initial_h)), optional_use(args, y), Use::write(args.out[3]));
  recorder_of(recorder).copy(Use::read(view(args.in, dh)), Use::write(args.out[2]));
  const int64_t at_once = y < 0 ? 1 : steps.steps;
  for (int64_t t = 0; t < steps.steps; t += at_once) MOKA_TRY(forward(recorder, args, t, at_once));
  for (int64_t t = steps.steps - 1; t >= 0; t--) MOKA_TRY(backward(recorder, args, t));
  return {};
}

Match match_gru_gradient(const MatchCall& m) {
  std::string refusal;
  const auto steps = step_products(m, 3, {"x_gates", "weight_hh", "initial_h", "bias", "y", "dy", "dh"}, refusal);
  if (!steps) return Match::no(refusal);
  const auto recurrent = ops::gate_of(m.call, "recurrent_activation"), activation = ops::gate_of(m.call, "activation");
  const auto after = m.call.flag("reset_after");
  if (!recurrent.ok() || !activation.ok() || !after.ok()) return Match::no("a parameter that is not constant");
  const auto at = [&](std::string_view p) { return m.call.has(p) ? m.call.arg_index(p) : -1; };
  const GruBack back{
      *steps,     *after,  at("x_gates"), at("weight_hh"), at("initial_h"),
      at("bias"), at("y"), at("dy"),      at("dh"),        {function_of(*recurrent), function_of(*activation)}};
  KernelChoice c = choice_of(m, "gru_gradient", {"x_gates", "weight_hh", "initial_h", "bias", "y", "dy", "dh"});
  c.scratch = static_cast<size_t>(back.scratch()) * 4;
  set_cost(c, m, steps->multiply_adds());
  c.cost += static_cast<double>(steps->steps) * 16e-6;
  c.record = [back](Recorder& recorder, const RecordArgs& args) { return back.record(recorder, args); };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_gru_gradient() {
  static const KernelDef defs[] = {{"gru_gradient", {"moka_gru_gradient"}, match_gru_gradient}};
  return {defs};
}

}  // namespace moka::devices::gpu
