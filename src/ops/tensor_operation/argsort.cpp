// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/sorting.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_argsort(const OpCall& call) {
  const Type& x = call.type("x");
  MOKA_TRY(call.flag("ascending"));
  if (!x.is_ranked()) return one(Type::unranked(DType::int32));
  MOKA_TRY(axis_of(call, "axis", x.rank()));
  return one(Type::tensor(DType::int32, x.shape()));
}

Status argsort_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const int axis = MOKA_TRY(axis_of(call, "axis", x.shape.rank()));
  const bool ascending = MOKA_TRY(call.flag("ascending"));
  for_each_sorted(x, axis, x.shape[axis], ascending,
                  [&](int64_t place, int64_t, int64_t index) { store_i64(out[0], place, index); });
  return {};
}

}  // namespace

OpDef define_argsort() {
  return OpBuilder("argsort", "The indices that sort x along an axis; equal elements keep their order, NaN comes last.")
      .type_var("T", kNumbers15)
      .in("x", "T")
      .constant("axis", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, -1))
      .constant("ascending", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_argsort)
      .reference(argsort_reference)
      .note("In both directions equal elements keep their order and NaN comes last.",
            "coremltools' value inference, numpy.argsort of x or -x; it leaves the order of equal elements open")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
