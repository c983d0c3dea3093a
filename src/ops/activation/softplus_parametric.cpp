// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ops/common/channels.h"
#include "ops/common/gradients.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_softplus_parametric(const OpCall& call) {
  MOKA_TRY(check_channel_params(call, 3, {"alpha", "beta"}));
  return one(call.type("x"));
}

Status softplus_parametric_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &alpha = call.in("alpha"), &beta = call.in("beta");
  each_channel_run(x.shape, [&](int64_t c, int64_t first, int64_t n) {
    const double a = load_f64(alpha, c), b = load_f64(beta, c);
    for (int64_t i = first; i < first + n; i++) store_f64(out[0], i, a * scalar::softplus(b * load_f64(x, i)));
  });
  return {};
}

void softplus_parametric_gradient(Gradient& g) {
  const Term alpha = channel_wise(g, "alpha"), beta = channel_wise(g, "beta"), x = g.x(), inner = beta * x;
  const Term slope = g.dy() * alpha * apply("sigmoid", inner);
  if (g.wants("x")) g.set("x", slope * beta);
  if (g.wants("alpha")) g.set("alpha", sum_but_channels(g, g.dy() * apply("softplus", inner)));
  if (g.wants("beta")) g.set("beta", sum_but_channels(g, slope * x));
}

}  // namespace

OpDef define_softplus_parametric() {
  return OpBuilder("softplus_parametric", "alpha[channel] * log(1 + e^(beta[channel] * x)).")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("alpha", "T")
      .constant("beta", "T")
      .infer(infer_softplus_parametric)
      .reference(softplus_parametric_reference)
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"alpha", "beta"});
          })
      .note("Computed like softplus of beta * x. Channels are axis 1.",
            "coremltools' definition; its value inference overflows where the formula does not")
      .gradient(softplus_parametric_gradient)
      .build();
}

}  // namespace moka::ops
