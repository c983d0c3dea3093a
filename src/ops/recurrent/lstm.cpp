// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/common/common.h"
#include "ops/common/recurrent_gradient.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

/// Checks a state [batch, width]. It may have more rows than the batch; the first ones are used. coremltools' converter
/// of packed sequences confuses a length with the batch.
Status check_state(const OpCall& call, std::string_view param, int64_t batch, int64_t width) {
  const Type& t = call.type(param);
  const bool spare = t.is_ranked() && t.rank() == 2 && batch >= 0 && t.shape()[0] > batch;
  return check_shape(call, param, {spare ? kAnyDim : batch, width});
}

Result<std::vector<Type>> infer_lstm(const OpCall& call) {
  const Direction direction = MOKA_TRY(direction_of(call, true));
  MOKA_TRY(recurrent_gate_of(call));
  for (const char* p : {"cell_activation", "activation"}) MOKA_TRY(gate_of(call, p));
  bool unranked = false;
  const RecurrentSizes s = MOKA_TRY(recurrent_sizes(call, 4, unranked));
  if (unranked) return std::vector<Type>(3, Type::unranked(call.dtype("x")));
  const bool both = direction == Direction::bidirectional;
  const int64_t gates = s.hidden < 0 ? kAnyDim : 4 * s.hidden, peeps = s.hidden < 0 ? kAnyDim : 3 * s.hidden;
  const int64_t width = s.hidden < 0 ? kAnyDim : (both ? 2 : 1) * s.hidden;
  if (call.has("bias")) MOKA_TRY(check_shape(call, "bias", {gates}));
  if (call.has("peephole")) MOKA_TRY(check_shape(call, "peephole", {peeps}));
  if (both) {
    for (const char* p : {"weight_ih_back", "weight_hh_back"}) {
      if (!call.has(p)) return call.error(p, "a value, because direction is bidirectional", "none");
    }
    MOKA_TRY(check_shape(call, "weight_ih_back", {gates, s.inputs}));
    MOKA_TRY(check_shape(call, "weight_hh_back", {gates, s.hidden}));
    if (call.has("bias_back")) MOKA_TRY(check_shape(call, "bias_back", {gates}));
    if (call.has("peephole_back")) MOKA_TRY(check_shape(call, "peephole_back", {peeps}));
  }
  MOKA_TRY(check_state(call, "initial_h", s.batch, width));
  MOKA_TRY(check_state(call, "initial_c", s.batch, width));
  if (call.has("clip")) {
    const double clip = MOKA_TRY(call.number("clip"));
    if (!(clip >= 0)) return call.error("clip", "0 or more", cat(clip));
  }
  return recurrent_outputs(call, s, width, 2);
}

/// One direction. Gates are in the order input, forget, output, cell.
struct Pass {
  const TensorView* weight_ih;
  const TensorView* weight_hh;
  const TensorView* bias;      // or null
  const TensorView* peephole;  // of the gates input, forget, output; or null
  bool reverse;
  int64_t column;  // first column of this direction's hidden units in states and outputs
};

const TensorView* optional_in(const OpCall& call, std::string_view p) { return call.has(p) ? &call.in(p) : nullptr; }

Status lstm_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[1].count() == 0) return {};
  const TensorView& x = call.in("x");
  const int64_t steps = x.shape[0], batch = x.shape[1], inputs = x.shape[2], hidden = call.in("weight_hh").shape[1];
  const Direction direction = MOKA_TRY(direction_of(call, true));
  const auto [recurrent, is_coupled] = MOKA_TRY(recurrent_gate_of(call));
  const Gate cell = MOKA_TRY(gate_of(call, "cell_activation"));
  const Gate activation = MOKA_TRY(gate_of(call, "activation"));
  const bool all = MOKA_TRY(call.flag("output_sequence"));
  const bool both = direction == Direction::bidirectional;
  const double clip = call.has("clip") ? MOKA_TRY(call.number("clip")) : INFINITY;
  const int64_t width = (both ? 2 : 1) * hidden;
  std::vector<Pass> passes = {{&call.in("weight_ih"), &call.in("weight_hh"), optional_in(call, "bias"),
                               optional_in(call, "peephole"), direction == Direction::reverse, 0}};
  if (both) {
    passes.push_back({&call.in("weight_ih_back"), &call.in("weight_hh_back"), optional_in(call, "bias_back"),
                      optional_in(call, "peephole_back"), true, hidden});
  }
  std::vector<double> work(static_cast<size_t>(inputs + 7 * hidden));
  double* const row = work.data();
  double* const h = row + inputs;
  double* const c = h + hidden;
  double* const z = c + hidden;  // input, forget, output, cell gates
  double* const squashed = z + 4 * hidden;
  for (const Pass& p : passes) {
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t state = b * width + p.column;
      load_run(call.in("initial_h"), state, 1, hidden, h);
      load_run(call.in("initial_c"), state, 1, hidden, c);
      for (int64_t t = 0; t < steps; ++t) {
        const int64_t at = p.reverse ? steps - 1 - t : t;
        load_run(x, (at * batch + b) * inputs, 1, inputs, row);
        std::fill(z, z + 4 * hidden, 0.0);
        if (p.bias != nullptr) add_vector(*p.bias, 0, 4 * hidden, z);
        add_product(*p.weight_ih, 0, 4 * hidden, inputs, row, z);
        add_product(*p.weight_hh, 0, 4 * hidden, hidden, h, z);
        if (p.peephole != nullptr) {
          for (int64_t i = 0; i < 2 * hidden; ++i) z[i] += load_f64(*p.peephole, i) * c[i % hidden];
        }
        apply_gate(recurrent, z, 2 * hidden);
        for (int64_t i = 0; is_coupled && i < hidden; ++i) z[hidden + i] = 1 - z[i];
        apply_gate(cell, z + 3 * hidden, hidden);
        for (int64_t i = 0; i < hidden; ++i) {
          c[i] = std::min(std::max(z[hidden + i] * c[i] + z[i] * z[3 * hidden + i], -clip), clip);
          if (p.peephole != nullptr) z[2 * hidden + i] += load_f64(*p.peephole, 2 * hidden + i) * c[i];
          squashed[i] = c[i];
        }
        apply_gate(recurrent, z + 2 * hidden, hidden);
        apply_gate(activation, squashed, hidden);
        for (int64_t i = 0; i < hidden; ++i) h[i] = z[2 * hidden + i] * squashed[i];
        if (all) store_run(out[0], ((both ? at : t) * batch + b) * width + p.column, 1, hidden, h);
      }
      if (!all) store_run(out[0], state, 1, hidden, h);
      store_run(out[1], state, 1, hidden, h);
      store_run(out[2], state, 1, hidden, c);
    }
  }
  return {};
}

/// Each direction goes backwards on its own. They share x and parts of the states.
void lstm_gradient(Gradient& g) {
  const auto direction = g.take(direction_of(g.known(), true));
  if (g.has_failed() || set_without_steps(g)) return;
  const bool both = direction == Direction::bidirectional;
  const int64_t hidden = g.op().input("weight_hh")->type.shape()[1];
  std::vector<Value*> initial_h, initial_c;
  for (int k = 0; k < (both ? 2 : 1); k++) {
    RecurrentDirection d(g, k == 0 ? "" : "_back", direction == Direction::reverse || k == 1, both ? k * hidden : -1);
    std::vector<NamedArg> args = d.args("bias");
    args.emplace_back("initial_c", d.initial("initial_c").value());
    args.emplace_back("dc", d.state(g.dy(2)).value());
    for (const char* p : {"recurrent_activation", "cell_activation", "activation"})
      args.emplace_back(p, std::string(g.text(p)));
    if (g.has("clip")) args.emplace_back("clip", g.scalar(g.number("clip")));
    if (g.has(d.name("peephole"))) args.emplace_back("peephole", g.in(d.name("peephole")).value());
    const std::vector<Term> made = g.call_all("moka_lstm_gradient", std::move(args), 5);
    if (g.has_failed()) return;
    if (g.wants("x")) g.add("x", d.dx(made[0]));
    d.set_input_weights(made[0]);
    if (g.wants(d.name("weight_hh"))) g.set(d.name("weight_hh"), d.outer(made[0], made[4]));
    d.set_bias("bias", made[0]);
    if (g.wants(d.name("peephole"))) g.set(d.name("peephole"), made[3]);
    initial_h.push_back(made[1].value());
    initial_c.push_back(made[2].value());
  }
  const auto joined = [&](std::vector<Value*>& parts) {
    return both ? g.call("concat", {{"values", parts}, {"axis", 1}}) : Term(g, parts[0]);
  };
  if (g.wants("initial_h")) set_initial(g, "initial_h", joined(initial_h));
  if (g.wants("initial_c")) set_initial(g, "initial_c", joined(initial_c));
}

}  // namespace

OpDef define_lstm() {
  return OpBuilder(
             "lstm",
             "Long short-term memory over [steps, batch, inputs] with gates in the order input, forget, output, cell. "
             "Outputs: the "
             "hidden states (each step's, or the final ones), the final hidden and cell state. Steps are in the order "
             "of computation (reverse: the last step of x first), with bidirectional in the order of x.")
      .type_var("T", only(DType::fp32))
      .in("x", "T")
      .in("initial_h", "T")
      .in("initial_c", "T")
      .constant("weight_ih", "T")
      .constant("weight_hh", "T")
      .constant("bias", "T")
      .optional()
      .constant("peephole", "T")
      .optional()
      .constant("weight_ih_back", "T")
      .optional()
      .constant("weight_hh_back", "T")
      .optional()
      .constant("bias_back", "T")
      .optional()
      .constant("peephole_back", "T")
      .optional()
      .constant("direction", kString)
      .one_of({"forward", "reverse", "bidirectional"})
      .or_else(Tensor::text("forward"))
      .constant("output_sequence", kBool)
      .or_else(Tensor::boolean(false))
      .constant("recurrent_activation", kString)
      .or_else(Tensor::text("sigmoid"))
      .constant("cell_activation", kString)
      .or_else(Tensor::text("tanh"))
      .constant("activation", kString)
      .or_else(Tensor::text("tanh"))
      .constant("clip", "T")
      .optional()
      .infer(infer_lstm)
      .reference(lstm_reference)
      .traits(Trait::costly)
      .gradient(lstm_gradient)
      .at(Opset::ios17, [](OpVersion& v) { v.set_domain("T", kF16F32); })
      .note(kGateNote.text, kGateNote.evidence)
      .note(kOrderNote.text, kOrderNote.evidence)
      .note(
          "Peepholes of the input and forget gates read the old cell state, that of the output gate the new one. clip "
          "limits the cell state.",
          "coremltools' definition's parameters; the equations of Core ML's UniDirectionalLSTMLayer")
      .note(
          "With \"; coupled\" after the name of the recurrent activation, the forget gate is 1 - input gate and its "
          "weights are not used.",
          "coupledInputAndForgetGate of the LSTM layers of neural networks, which become this operation")
      .note(
          "Bidirectional: forward units come first. With output_sequence the backward half is at the step it belongs "
          "to.",
          "coremltools' test_builder_to_backend_smoke_bidirlstm against torch.nn.LSTM")
      .note("States may have more rows than the batch. The first ones count.",
            "coremltools' converter of packed sequences writes such states")
      .build();
}

}  // namespace moka::ops
