// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/recurrent_gradient.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_rnn_gradient(const OpCall& call) {
  MOKA_TRY(gate_of(call, "activation"));
  bool unranked = false;
  const RecurrentSizes s = MOKA_TRY(recurrent_gradient_sizes(call, 1, unranked));
  const DType dtype = call.dtype("x_gates");
  if (unranked) return std::vector<Type>(3, Type::unranked(dtype));
  const Type all = Type::tensor(dtype, {s.steps, s.batch, s.hidden});
  return std::vector<Type>{all, Type::tensor(dtype, {s.batch, s.hidden}), all};
}

Status rnn_gradient_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& weight_hh = call.in("weight_hh");
  const int64_t steps = out[0].shape[0], batch = out[0].shape[1], hidden = weight_hh.shape[1], step = batch * hidden;
  const Gate activation = MOKA_TRY(gate_of(call, "activation"));
  const auto given = [&](std::string_view p) { return call.has(p) ? doubles_of(call.in(p)) : std::vector<double>(); };
  const std::vector<double> y = given("y"), dy = given("dy");
  std::vector<double> states = given("initial_h"), gates = given("x_gates"), dh = given("dh");
  states.resize(static_cast<size_t>((steps + 1) * step));
  for (int64_t r = 0; r < steps * batch; ++r) {
    double *z = gates.data() + r * hidden, *next = states.data() + r * hidden + step;
    add_product(weight_hh, 0, hidden, hidden, states.data() + r * hidden, z);
    apply_gate(activation, z, hidden);
    std::copy_n(y.empty() ? z : y.data() + r * hidden, hidden, next);
  }
  for (int64_t r = steps * batch - 1; r >= 0; --r) {
    double *z = gates.data() + r * hidden, *d = dh.data() + r % batch * hidden;
    for (int64_t i = 0; i < hidden; ++i)
      z[i] = (d[i] + (dy.empty() ? 0 : dy[static_cast<size_t>(r * hidden + i)])) * gate_slope(activation, z[i]);
    std::fill_n(d, hidden, 0.0);
    add_transposed_product(weight_hh, 0, hidden, hidden, z, d);
  }
  store_doubles(out[0], gates);
  store_doubles(out[1], dh);
  states.resize(static_cast<size_t>(steps * step));
  store_doubles(out[2], states);
  return {};
}

}  // namespace

OpDef define_moka_rnn_gradient() {
  return recurrent_gradient_builder(
             "moka_rnn_gradient",
             "Walks an rnn backwards. From the products x_gates of x with its weights and the gradients of the "
             "results: the gradients of these products and of initial_h, and the hidden state before each step. Steps "
             "are in the order of computation.")
      .constant("activation", kString)
      .or_else(Tensor::text("tanh"))
      .infer(infer_rnn_gradient)
      .reference(rnn_gradient_reference)
      .note("The products of all steps give the gradients of x, of the weights and of the bias.",
            "torch.nn.RNN with torch.autograd")
      .build();
}

}  // namespace moka::ops
