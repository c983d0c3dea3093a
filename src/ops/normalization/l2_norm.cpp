// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_l2_norm(const OpCall& call) {
  const Type& x = call.type("x");
  if (x.is_ranked() && x.rank() < 3) return call.error("x", "rank 3 or more", cat("shape ", x.shape()));
  MOKA_TRY(call.number("epsilon"));
  return one(x);
}

Status l2_norm_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const double epsilon = MOKA_TRY(call.number("epsilon"));
  const int rank = x.shape.rank();
  const int64_t n = x.shape.count(rank - 3, rank), count = x.count();
  for (int64_t first = 0; first < count; first += n) {
    double sum = epsilon;
    for (int64_t i = first; i < first + n; i++) {
      const double v = load_f64(x, i);
      sum += v * v;
    }
    const double norm = std::sqrt(sum);
    for (int64_t i = first; i < first + n; i++) store_f64(out[0], i, load_f64(x, i) / norm);
  }
  return {};
}

void l2_norm_gradient(Gradient& g) {
  const Ints axes{-3, -2, -1};
  const Term squares = g.sum(square(g.x()), axes, true);
  const Term inverse = g.call("rsqrt", {{"x", squares.value()}, {"epsilon", g.scalar(g.number("epsilon"))}});
  g.set("x", inverse * (g.dy() - g.y() * g.sum(g.dy() * g.y(), axes, true)));
}

}  // namespace

OpDef define_l2_norm() {
  return OpBuilder("l2_norm", "x divided by sqrt(sum of squares + epsilon). The sum is over the last three axes.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("epsilon", "T")
      .or_else(Tensor::scalar(DType::fp32, 1e-6))
      .infer(infer_l2_norm)
      .reference(l2_norm_reference)
      .at(Opset::ios17, [](OpVersion& v) { own_float_type(v, {"epsilon"}); })
      .note("The sum is over the last three axes. epsilon is added before the root.", "coremltools' definition")
      .gradient(l2_norm_gradient)
      .build();
}

}  // namespace moka::ops
