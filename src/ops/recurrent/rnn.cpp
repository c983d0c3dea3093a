#include <algorithm>

#include "ops/common/common.h"
#include "ops/common/recurrent.h"
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
  const TensorView& x = call.in("x");
  const TensorView& weight_hh = call.in("weight_hh");
  const int64_t steps = x.shape[0], batch = x.shape[1], inputs = x.shape[2], hidden = weight_hh.shape[1];
  const bool reverse = MOKA_TRY(direction_of(call, false)) == Direction::reverse;
  const Gate activation = MOKA_TRY(gate_of(call, "activation"));
  const bool all = MOKA_TRY(call.flag("output_sequence"));
  std::vector<double> work(static_cast<size_t>(inputs + 2 * hidden));
  double* const row = work.data();
  double* const h = row + inputs;
  double* const next = h + hidden;
  for (int64_t b = 0; b < batch; ++b) {
    load_run(call.in("initial_h"), b * hidden, 1, hidden, h);
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t at = reverse ? steps - 1 - t : t;
      load_run(x, (at * batch + b) * inputs, 1, inputs, row);
      std::fill(next, next + hidden, 0.0);
      if (call.has("bias")) add_vector(call.in("bias"), 0, hidden, next);
      add_product(call.in("weight_ih"), 0, hidden, inputs, row, next);
      add_product(weight_hh, 0, hidden, hidden, h, next);
      apply_gate(activation, next, hidden);
      std::copy(next, next + hidden, h);
      if (all) store_run(out[0], (t * batch + b) * hidden, 1, hidden, h);
    }
    if (!all) store_run(out[0], b * hidden, 1, hidden, h);
    store_run(out[1], b * hidden, 1, hidden, h);
  }
  return {};
}

}  // namespace

OpDef define_rnn() {
  return OpBuilder(
             "rnn",
             "Plain recurrent layer over [steps, batch, inputs]. Outputs: the hidden states (each step's in the order "
             "of computation, or the final one) and the final hidden state.")
      .type_var("T", only(DType::fp32))
      .in("x", "T")
      .in("initial_h", "T")
      .constant("weight_ih", "T")
      .constant("weight_hh", "T")
      .constant("bias", "T")
      .optional()
      .constant("direction", kString)
      .one_of({"forward", "reverse"})
      .or_else(Tensor::text("forward"))
      .constant("output_sequence", kBool)
      .or_else(Tensor::boolean(false))
      .constant("activation", kString)
      .or_else(Tensor::text("tanh"))
      .infer(infer_rnn)
      .reference(rnn_reference)
      .at(Opset::ios17, [](OpVersion& v) { v.set_domain("T", kF16F32); })
      .note(kGateNote.text, kGateNote.evidence)
      .note(kOrderNote.text, kOrderNote.evidence)
      .build();
}

}  // namespace moka::ops
