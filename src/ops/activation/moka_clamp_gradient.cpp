// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/common.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_clamp_gradient(const OpCall& call) {
  if (!is_compatible(call.type("dy"), call.type("x")))
    return call.error("dy", cat(call.type("x"), ", the type of x"), cat(call.type("dy")));
  return same_as_x_with_scalars({"alpha", "beta"})(call);
}

Status clamp_gradient_reference(const OpCall& call, std::span<const TensorView> out) {
  const double low = MOKA_TRY(scalar_param(call, "alpha")), high = MOKA_TRY(scalar_param(call, "beta"));
  const TensorView &x = call.in("x"), &dy = call.in("dy");
  for (int64_t i = 0; i < out[0].count(); i++) {
    const double v = load_f64(x, i);
    store_f64(out[0], i, v > low && (v < high || high == INFINITY) ? load_f64(dy, i) : 0);
  }
  return {};
}

}  // namespace

OpDef define_moka_clamp_gradient() {
  return OpBuilder("moka_clamp_gradient",
                   "The gradient of a function that limits its argument: dy where x is between alpha and beta, else 0.",
                   Opset::ios13)
      .type_var("T", kF16F32)
      .in("x", "T")
      .in("dy", "T")
      .constant("alpha", "T")
      .constant("beta", "T")
      .infer(infer_clamp_gradient)
      .reference(clamp_gradient_reference)
      .note("0 where x is alpha, beta or NaN. An infinite beta does not count.",
            "torch.relu, torch.nn.functional.relu6")
      .build();
}

}  // namespace moka::ops
