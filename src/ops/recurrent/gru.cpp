// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/common/common.h"
#include "ops/common/recurrent_gradient.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

bool has_reset_after(const OpCall& call) { return call.version().since >= Opset::ios18; }

Result<std::vector<Type>> infer_gru(const OpCall& call) {
  MOKA_TRY(direction_of(call, false));
  MOKA_TRY(gate_of(call, "recurrent_activation"));
  MOKA_TRY(gate_of(call, "activation"));
  bool unranked = false;
  const RecurrentSizes s = MOKA_TRY(recurrent_sizes(call, 3, unranked));
  if (unranked) return std::vector<Type>(2, Type::unranked(call.dtype("x")));
  const int64_t gates = s.hidden < 0 ? kAnyDim : 3 * s.hidden;
  if (call.has("bias")) MOKA_TRY(check_shape(call, "bias", {gates}));
  if (has_reset_after(call)) {
    MOKA_TRY(call.flag("reset_after"));
    if (call.has("input_bias")) MOKA_TRY(check_shape(call, "input_bias", {gates}));
  }
  MOKA_TRY(check_shape(call, "initial_h", {s.batch, s.hidden}));
  return recurrent_outputs(call, s, s.hidden, 1);
}

Status gru_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[1].count() == 0) return {};
  const TensorView& weight_ih = call.in("weight_ih");
  const TensorView& weight_hh = call.in("weight_hh");
  const int64_t inputs = call.in("x").shape[2], hidden = weight_hh.shape[1];
  const Gate recurrent = MOKA_TRY(gate_of(call, "recurrent_activation"));
  const Gate activation = MOKA_TRY(gate_of(call, "activation"));
  const bool reset_after = has_reset_after(call) && MOKA_TRY(call.flag("reset_after"));
  const TensorView* bias = call.has("bias") ? &call.in("bias") : nullptr;
  const TensorView* input_bias = has_reset_after(call) && call.has("input_bias") ? &call.in("input_bias") : nullptr;
  std::vector<double> work(static_cast<size_t>(7 * hidden));
  double* const from_x = work.data();          // for the gates reset, new, update
  double* const from_h = from_x + 3 * hidden;  // for the same gates
  double* const kept = from_h + 3 * hidden;    // reset gate times state
  double* const reset = from_x;
  double* const fresh = from_x + hidden;
  double* const update = from_x + 2 * hidden;
  return run_steps(call, out, [&](const double* x, double* h) {
    std::fill(from_x, from_x + 6 * hidden, 0.0);
    if (input_bias != nullptr) add_vector(*input_bias, 0, 3 * hidden, from_x);
    if (bias != nullptr) add_vector(*bias, 0, 3 * hidden, from_h);
    add_product(weight_ih, 0, 3 * hidden, inputs, x, from_x);
    add_product(weight_hh, 0, hidden, hidden, h, from_h);
    add_product(weight_hh, 2 * hidden, hidden, hidden, h, from_h + 2 * hidden);
    for (int64_t i = 0; i < hidden; ++i) {
      reset[i] += from_h[i];
      update[i] += from_h[2 * hidden + i];
    }
    apply_gate(recurrent, reset, hidden);
    apply_gate(recurrent, update, hidden);
    if (reset_after) {
      add_product(weight_hh, hidden, hidden, hidden, h, from_h + hidden);
      for (int64_t i = 0; i < hidden; ++i) fresh[i] += reset[i] * from_h[hidden + i];
    } else {
      for (int64_t i = 0; i < hidden; ++i) kept[i] = reset[i] * h[i];
      add_product(weight_hh, hidden, hidden, hidden, kept, from_h + hidden);
      for (int64_t i = 0; i < hidden; ++i) fresh[i] += from_h[hidden + i];
    }
    apply_gate(activation, fresh, hidden);
    for (int64_t i = 0; i < hidden; ++i) h[i] = (1 - update[i]) * fresh[i] + update[i] * h[i];
  });
}

void gru_gradient(Gradient& g) {
  const auto direction = g.take(direction_of(g.known(), false));
  const bool after = has_reset_after(g.known()) && g.flag("reset_after");
  if (g.has_failed() || set_without_steps(g)) return;
  const bool has_input_bias = has_reset_after(g.known()) && g.has("input_bias");
  RecurrentDirection d(g, "", direction == Direction::reverse, -1);
  std::vector<NamedArg> args = d.args(has_input_bias ? "input_bias" : "");
  for (const char* p : {"recurrent_activation", "activation"}) args.emplace_back(p, std::string(g.text(p)));
  if (g.has("bias")) args.emplace_back("bias", g.in("bias").value());
  args.emplace_back("reset_after", after);
  const std::vector<Term> made = g.call_all("moka_gru_gradient", std::move(args), 5);
  if (g.has_failed()) return;
  const Term gates = made[0], products = made[1], before = made[3], kept = made[4];
  if (g.wants("x")) g.set("x", d.dx(gates));
  d.set_input_weights(gates);
  if (has_input_bias) d.set_bias("input_bias", gates);
  d.set_bias("bias", products);
  set_initial(g, "initial_h", made[2]);
  if (!g.wants("weight_hh")) return;
  if (after) return g.set("weight_hh", d.outer(products, before));
  std::vector<Value*> parts;
  for (int i = 0; i < 3; i++)
    parts.push_back(
        d.outer(part_of_axis(products, 2, i * d.hidden(), (i + 1) * d.hidden()), i == 1 ? kept : before).value());
  g.set("weight_hh", g.call("concat", {{"values", std::move(parts)}, {"axis", 0}}));
}

}  // namespace

OpDef define_gru() {
  return recurrent_builder(
             "gru",
             "Gated recurrent unit over [steps, batch, inputs] with gates in the order reset, new, update. Outputs: "
             "the hidden "
             "states (each step's in the order of computation, or the final one) and the final hidden state.")
      .constant("recurrent_activation", kString)
      .or_else(Tensor::text("sigmoid"))
      .constant("activation", kString)
      .or_else(Tensor::text("tanh"))
      .infer(infer_gru)
      .reference(gru_reference)
      .traits(Trait::costly)
      .gradient(gru_gradient)
      .at(Opset::ios17, [](OpVersion& v) { v.set_domain("T", kF16F32); })
      .at(Opset::ios18,
          [](OpVersion& v) {
            ParamDef after;
            after.name = "reset_after";
            after.dtypes = kBool;
            after.constant = true;
            after.set_default(Tensor::boolean(false));
            ParamDef input_bias;
            input_bias.name = "input_bias";
            input_bias.type_var = "T";
            input_bias.constant = true;
            input_bias.optional = true;
            v.params.push_back(std::move(after));
            v.params.push_back(std::move(input_bias));
          })
      .note(kGateNote.text, kGateNote.evidence)
      .note(kOrderNote.text, kOrderNote.evidence)
      .note("Gates are in the order reset, new, update: h' = (1 - update) * new + update * h.", "coremltools' TestGRU")
      .note(
          "With reset_after false, reset multiplies the state before the product. With true it multiplies product and "
          "bias.",
          "coremltools' iOS18 test_recurrent.py, test_pytorch_parity")
      .note(
          "bias belongs to the product with the state, input_bias to that with x. With reset_after true, reset "
          "multiplies only the former.",
          "coremltools' TestGRU and iOS18 test_pytorch_parity")
      .build();
}

}  // namespace moka::ops
