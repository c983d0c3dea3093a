// SPDX-License-Identifier: Apache-2.0
#include "ops/common/batch_norm_gradient.h"

#include "ops/common/channels.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_batch_norm_gradient(const OpCall& call) {
  MOKA_TRY(check_channel_params(call, 2, {"mean", "variance", "gamma"}));
  MOKA_TRY(call.number("epsilon"));
  const Type& x = call.type("x");
  if (!is_compatible(call.type("dy"), x)) return call.error("dy", cat(x, ", the type of x"), cat(call.type("dy")));
  const Type channels = Type::tensor(x.dtype(), Shape{x.is_ranked() && x.rank() > 1 ? x.shape()[1] : kAnyDim});
  return std::vector<Type>{x, channels, channels};
}

}  // namespace

OpBuilder batch_norm_gradient_builder(std::string name, std::string doc) {
  OpBuilder b(std::move(name), std::move(doc), Opset::ios13);
  b.type_var("T", kF16F32)
      .in("x", "T")
      .in("dy", "T")
      .in("mean", "T")
      .in("variance", "T")
      .in("gamma", "T")
      .optional()
      .constant("epsilon", "T")
      .or_else(Tensor::scalar(DType::fp32, 1e-5))
      .infer(infer_batch_norm_gradient);
  return b;
}

}  // namespace moka::ops
