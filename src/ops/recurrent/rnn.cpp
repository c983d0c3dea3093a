// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/common/common.h"
#include "ops/common/recurrent_gradient.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_rnn(const OpCall& call) {
  MOKA_TRY(direction_of(call, false));
  MOKA_TRY(gate_of(call, "activation"));
  bool unranked = false;
  const RecurrentSizes s = MOKA_TRY(recurrent_sizes(call, 1, unranked));
  if (unranked) return std::vector<Type>(2, Type::unranked(call.dtype("x")));
  if (call.has("bias")) MOKA_TRY(check_shape(call, "bias", {s.hidden}));
  MOKA_TRY(check_shape(call, "initial_h", {s.batch, s.hidden}));
  return recurrent_outputs(call, s, s.hidden, 1);
}

Status rnn_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[1].count() == 0) return {};
  const TensorView& weight_hh = call.in("weight_hh");
  const int64_t inputs = call.in("x").shape[2], hidden = weight_hh.shape[1];
  const Gate activation = MOKA_TRY(gate_of(call, "activation"));
  std::vector<double> next(static_cast<size_t>(hidden));
  return run_steps(call, out, [&](const double* x, double* h) {
    std::fill(next.begin(), next.end(), 0.0);
    if (call.has("bias")) add_vector(call.in("bias"), 0, hidden, next.data());
    add_product(call.in("weight_ih"), 0, hidden, inputs, x, next.data());
    add_product(weight_hh, 0, hidden, hidden, h, next.data());
    apply_gate(activation, next.data(), hidden);
    std::copy(next.begin(), next.end(), h);
  });
}

void rnn_gradient(Gradient& g) {
  const auto direction = g.take(direction_of(g.known(), false));
  if (g.has_failed() || set_without_steps(g)) return;
  RecurrentDirection d(g, "", direction == Direction::reverse, -1);
  std::vector<NamedArg> args = d.args("bias");
  args.emplace_back("activation", std::string(g.text("activation")));
  const std::vector<Term> made = g.call_all("moka_rnn_gradient", std::move(args), 3);
  if (g.has_failed()) return;
  if (g.wants("x")) g.set("x", d.dx(made[0]));
  d.set_input_weights(made[0]);
  if (g.wants("weight_hh")) g.set("weight_hh", d.outer(made[0], made[2]));
  d.set_bias("bias", made[0]);
  set_initial(g, "initial_h", made[1]);
}

}  // namespace

OpDef define_rnn() {
  return recurrent_builder(
             "rnn",
             "Plain recurrent layer over [steps, batch, inputs]. Outputs: the hidden states (each step's in the order "
             "of computation, or the final one) and the final hidden state.")
      .constant("activation", kString)
      .or_else(Tensor::text("tanh"))
      .infer(infer_rnn)
      .reference(rnn_reference)
      .traits(Trait::costly)
      .gradient(rnn_gradient)
      .at(Opset::ios17, [](OpVersion& v) { v.set_domain("T", kF16F32); })
      .note(kGateNote.text, kGateNote.evidence)
      .note(kOrderNote.text, kOrderNote.evidence)
      .build();
}

}  // namespace moka::ops
