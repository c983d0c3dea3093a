// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_fill(const OpCall& call) {
  MOKA_TRY(expect_vector(call, "shape"));
  const TensorView* fill = call.value("value");
  if (fill == nullptr || fill->count() != 1) return call.error("value", "a known scalar", "something else");
  const TensorView* shape = call.value("shape");
  const int64_t rank = shape != nullptr ? shape->count() : length_of(call, "shape");
  if (rank < 0) return one(Type::unranked(fill->dtype));
  if (rank > kMaxRank) return call.error("shape", cat("at most ", kMaxRank, " dimensions"), cat(rank));
  Shape out;
  for (int64_t i = 0; i < rank; i++) {
    out.push_back(shape != nullptr ? MOKA_TRY(dim_from_value(call, "shape", load_i64(*shape, i))) : kAnyDim);
  }
  return tensor_result(call, fill->dtype, out);
}

Status fill_reference(const OpCall& call, std::span<const TensorView> out) {
  fill_elements(out[0], 0, out[0].count(), *call.value("value"));
  return {};
}

}  // namespace

OpDef define_fill() {
  return OpBuilder("fill", "A tensor of the given shape with all elements equal to `value`.")
      .type_var("T", kPlain15)
      .in("shape", kI32)
      .constant("value", "T")
      .or_else(Tensor::scalar(DType::fp32, 0))
      .infer(infer_fill)
      .reference(fill_reference)
      .note("The result has the type of value.", "coremltools' definition")
      .build();
}

}  // namespace moka::ops
