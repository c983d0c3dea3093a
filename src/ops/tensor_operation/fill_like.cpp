// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_fill_like(const OpCall& call) {
  const Type& ref = call.type("ref_tensor");
  const TensorView* fill = call.value("value");
  if (fill == nullptr || fill->count() != 1) return call.error("value", "a known scalar", "something else");
  return one(ref.is_ranked() ? Type::tensor(fill->dtype, ref.shape()) : Type::unranked(fill->dtype));
}

Status fill_like_reference(const OpCall& call, std::span<const TensorView> out) {
  fill_elements(out[0], 0, out[0].count(), *call.value("value"));
  return {};
}

}  // namespace

OpDef define_fill_like() {
  return OpBuilder("fill_like", "A tensor of the shape of `ref_tensor` with all elements equal to `value`.",
                   Opset::ios16)
      .type_var("T", kPlain15)
      .type_var("U", kPlain15)
      .in("ref_tensor", "T")
      .constant("value", "U")
      .or_else(Tensor::scalar(DType::fp32, 0))
      .infer(infer_fill_like)
      .reference(fill_like_reference)
      .note("The type of ref_tensor does not matter.", "coremltools' definition")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
