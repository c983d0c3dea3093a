// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ops/common/channels.h"
#include "ops/common/gradients.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_prelu(const OpCall& call) {
  MOKA_TRY(check_channel_params(call, 2, {"alpha"}));
  return one(call.type("x"));
}

Status prelu_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &alpha = call.in("alpha"), &y = out[0];
  each_channel_run(x.shape, [&](int64_t c, int64_t first, int64_t n) {
    const double a = load_f64(alpha, c);
    if (x.dtype == DType::fp32) {
      const float* from = x.as<float>() + first;
      float* to = y.as<float>() + first;
      for (int64_t i = 0; i < n; i++) to[i] = scalar::leaky_relu(from[i], static_cast<float>(a));
    } else {
      for (int64_t i = first; i < first + n; i++) store_f64(y, i, scalar::leaky_relu(load_f64(x, i), a));
    }
  });
  return {};
}

void prelu_gradient(Gradient& g) {
  const Term x = g.x(), is_negative = compare("less", x, 0.0), alpha = channel_wise(g, "alpha");
  if (g.wants("x")) g.set("x", select(is_negative, g.dy() * alpha, g.dy()));
  if (g.wants("alpha")) g.set("alpha", sum_but_channels(g, select(is_negative, g.dy() * x, 0.0)));
}

}  // namespace

OpDef define_prelu() {
  return OpBuilder("prelu", "x, or alpha[channel] * x where x is negative.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("alpha", "T")
      .infer(infer_prelu)
      .reference(prelu_reference)
      .at(Opset::ios17, [](OpVersion& v) { own_float_type(v, {"alpha"}); })
      .note("Channels are axis 1 at any rank of 2 or more. alpha may differ between channels at every rank.",
            "coremltools refuses that at ranks 3 and 5 for its own converter; the formula is the same")
      .gradient(prelu_gradient)
      .build();
}

}  // namespace moka::ops
