// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_shape(const OpCall& call) {
  const Type& x = call.type("x");
  return one(Type::tensor(DType::int32, {x.is_ranked() ? x.rank() : kAnyDim}));
}

Status shape_reference(const OpCall& call, std::span<const TensorView> out) {
  const Shape& s = call.in("x").shape;
  for (int i = 0; i < s.rank(); i++) store_i64(out[0], i, s[i]);
  return {};
}

}  // namespace

OpDef define_shape() {
  return OpBuilder("shape", "The dimensions of x as a vector.")
      .traits(Trait::types_only)
      .type_var("T", kPlain15)
      .in("x", "T")
      .infer(infer_shape)
      .reference(shape_reference)
      .note("A scalar has an empty shape.", "coremltools' value inference, numpy.shape")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
