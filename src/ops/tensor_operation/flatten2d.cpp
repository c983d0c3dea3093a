// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_flatten2d(const OpCall& call) {
  const Type& x = call.type("x");
  int64_t axis = MOKA_TRY(call.integer("axis"));
  if (!x.is_ranked()) return one(Type::tensor(x.dtype(), {kAnyDim, kAnyDim}));
  const int rank = x.rank();
  if (axis < -rank || axis > rank) return call.error("axis", cat("an axis from ", -rank, " to ", rank), cat(axis));
  if (axis < 0) axis += rank;
  return tensor_result(call, x.dtype(),
                       Shape{MOKA_TRY(product_of_dims(x.shape(), 0, static_cast<int>(axis))),
                             MOKA_TRY(product_of_dims(x.shape(), static_cast<int>(axis), rank))});
}

Status flatten2d_reference(const OpCall& call, std::span<const TensorView> out) {
  copy_all(out[0], call.in("x"));
  return {};
}

void flatten2d_gradient(Gradient& g) { g.set("x", g.reshape(g.dy(), g.x().shape())); }

}  // namespace

OpDef define_flatten2d() {
  return OpBuilder("flatten2d", "A matrix: the dimensions before `axis` become its rows, the others its columns.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .constant("axis", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .infer(infer_flatten2d)
      .reference(flatten2d_reference)
      .traits(Trait::alias | Trait::moves_data_only)
      .note("axis may be negative. Axis 0 gives one row, an axis equal to the rank one column.",
            "coremltools' definition")
      .gradient(flatten2d_gradient)
      .build();
}

}  // namespace moka::ops
