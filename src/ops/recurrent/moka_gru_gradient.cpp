// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/recurrent_gradient.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_gru_gradient(const OpCall& call) {
  for (const char* p : {"recurrent_activation", "activation"}) MOKA_TRY(gate_of(call, p));
  MOKA_TRY(call.flag("reset_after"));
  bool unranked = false;
  const RecurrentSizes s = MOKA_TRY(recurrent_gradient_sizes(call, 3, unranked));
  const DType dtype = call.dtype("x_gates");
  if (unranked) return std::vector<Type>(5, Type::unranked(dtype));
  const int64_t made = s.hidden < 0 ? kAnyDim : 3 * s.hidden;
  if (call.has("bias")) MOKA_TRY(check_shape(call, "bias", {made}));
  const Type gates = Type::tensor(dtype, {s.steps, s.batch, made}),
             states = Type::tensor(dtype, {s.steps, s.batch, s.hidden});
  return std::vector<Type>{gates, gates, Type::tensor(dtype, {s.batch, s.hidden}), states, states};
}

/// One step of one row of the batch. Gates are in the order reset, new, update.
struct GruStep {
  const TensorView& weight_hh;
  const double* bias;  // or null
  Gate recurrent, activation;
  bool after;
  int64_t hidden;

  /// From the products of x, `z`, to the gates. `product`: of the state with the weights of the new value.
  void forward(const double* h, double* z, double* product, double* kept, double* next) const;
  /// From the gates to their gradients, and to those of the products with the state, `d_product`.
  void backward(const double* h, double* z, const double* product, double* d_product, double* dh) const;
};

void GruStep::forward(const double* h, double* z, double* product, double* kept, double* next) const {
  for (int64_t i = 0; i < 3 * hidden && bias != nullptr; ++i)
    if (i / hidden != 1) z[i] += bias[i];
  add_product(weight_hh, 0, hidden, hidden, h, z);
  add_product(weight_hh, 2 * hidden, hidden, hidden, h, z + 2 * hidden);
  apply_gate(recurrent, z, hidden);
  apply_gate(recurrent, z + 2 * hidden, hidden);
  for (int64_t i = 0; i < hidden; ++i) {
    product[i] = bias != nullptr ? bias[hidden + i] : 0;
    kept[i] = after ? h[i] : z[i] * h[i];
  }
  add_product(weight_hh, hidden, hidden, hidden, kept, product);
  double *fresh = z + hidden, *update = z + 2 * hidden;
  for (int64_t i = 0; i < hidden; ++i) fresh[i] += (after ? z[i] : 1) * product[i];
  apply_gate(activation, fresh, hidden);
  for (int64_t i = 0; i < hidden; ++i) next[i] = (1 - update[i]) * fresh[i] + update[i] * h[i];
}

void GruStep::backward(const double* h, double* z, const double* product, double* d_product, double* dh) const {
  double *reset = z, *fresh = z + hidden, *update = z + 2 * hidden;
  std::vector<double> d_kept(static_cast<size_t>(hidden));
  for (int64_t i = 0; i < hidden; ++i) {
    const double d_fresh = dh[i] * (1 - update[i]) * gate_slope(activation, fresh[i]);
    d_product[2 * hidden + i] = dh[i] * (h[i] - fresh[i]) * gate_slope(recurrent, update[i]);
    d_product[hidden + i] = after ? d_fresh * reset[i] : d_fresh;
    dh[i] *= update[i];
    fresh[i] = d_fresh;
    update[i] = d_product[2 * hidden + i];
  }
  add_transposed_product(weight_hh, hidden, hidden, hidden, d_product + hidden, d_kept.data());
  for (int64_t i = 0; i < hidden; ++i) {
    const double kept = d_kept[static_cast<size_t>(i)];
    const double d_reset = after ? fresh[i] * product[i] : kept * h[i];
    dh[i] += after ? kept : kept * reset[i];
    d_product[i] = reset[i] = d_reset * gate_slope(recurrent, reset[i]);
  }
  add_transposed_product(weight_hh, 0, hidden, hidden, d_product, dh);
  add_transposed_product(weight_hh, 2 * hidden, hidden, hidden, d_product + 2 * hidden, dh);
}

Status gru_gradient_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& weight_hh = call.in("weight_hh");
  const int64_t steps = out[0].shape[0], batch = out[0].shape[1], hidden = weight_hh.shape[1], rows = steps * batch;
  const auto given = [&](std::string_view p) { return call.has(p) ? doubles_of(call.in(p)) : std::vector<double>(); };
  const std::vector<double> y = given("y"), dy = given("dy"), bias = given("bias");
  std::vector<double> states = given("initial_h"), gates = given("x_gates"), dh = given("dh");
  states.resize(static_cast<size_t>((rows + batch) * hidden));
  std::vector<double> products(static_cast<size_t>(rows * hidden)), kept = products, d_products(gates.size());
  const GruStep step{weight_hh,
                     bias.empty() ? nullptr : bias.data(),
                     MOKA_TRY(gate_of(call, "recurrent_activation")),
                     MOKA_TRY(gate_of(call, "activation")),
                     MOKA_TRY(call.flag("reset_after")),
                     hidden};
  for (int64_t r = 0; r < rows; ++r) {
    double *h = states.data() + r * hidden, *next = h + batch * hidden;
    step.forward(h, gates.data() + r * 3 * hidden, products.data() + r * hidden, kept.data() + r * hidden, next);
    if (!y.empty()) std::copy_n(y.data() + r * hidden, hidden, next);
  }
  for (int64_t r = rows - 1; r >= 0; --r) {
    double* d = dh.data() + r % batch * hidden;
    for (int64_t i = 0; i < hidden && !dy.empty(); ++i) d[i] += dy[static_cast<size_t>(r * hidden + i)];
    step.backward(states.data() + r * hidden, gates.data() + r * 3 * hidden, products.data() + r * hidden,
                  d_products.data() + r * 3 * hidden, d);
  }
  states.resize(static_cast<size_t>(rows * hidden));
  const std::vector<double>* const results[] = {&gates, &d_products, &dh, &states, &kept};
  for (size_t i = 0; i < 5; ++i) store_doubles(out[i], *results[i]);
  return {};
}

}  // namespace

OpDef define_moka_gru_gradient() {
  return recurrent_gradient_builder(
             "moka_gru_gradient",
             "Walks a gru backwards. From the products x_gates of x with its weights and the gradients of the results: "
             "the gradients of these products, of the products with the state, and of initial_h; the hidden state "
             "before each step, and what the weights of the new value multiply then. Steps are in the order of "
             "computation.")
      .in("bias", "T")
      .optional()
      .constant("recurrent_activation", kString)
      .or_else(Tensor::text("sigmoid"))
      .constant("activation", kString)
      .or_else(Tensor::text("tanh"))
      .constant("reset_after", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_gru_gradient)
      .reference(gru_gradient_reference)
      .note("bias belongs to the products with the state.", "gru")
      .note("The products of all steps give the gradients of x, of the weights and of the biases.",
            "torch.nn.GRU with torch.autograd")
      .build();
}

}  // namespace moka::ops
