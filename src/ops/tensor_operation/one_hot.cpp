// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_one_hot(const OpCall& call) {
  const TensorView *on = call.value("on_value"), *off = call.value("off_value");
  for (const TensorView* v : {on, off}) {
    if (v == nullptr || v->count() != 1)
      return call.error("on_value", "known scalars for on_value and off_value", "something else");
  }
  // A default takes the type of the value that is given.
  const DType dtype = call.has("on_value") ? on->dtype : off->dtype;
  if (call.has("on_value") && call.has("off_value") && on->dtype != off->dtype) {
    return call.error("off_value", cat("element type ", on->dtype, " like on_value"), cat(off->dtype));
  }
  int64_t depth = kAnyDim;
  if (call.is_known("one_hot_vector_size")) {
    depth = MOKA_TRY(dim_from_value(call, "one_hot_vector_size", MOKA_TRY(call.integer("one_hot_vector_size"))));
  }
  const Type& indices = call.type("indices");
  if (!indices.is_ranked()) return one(Type::unranked(dtype));
  if (indices.rank() == kMaxRank) return call.error("indices", cat("rank below ", kMaxRank), cat("rank ", kMaxRank));
  Shape out = indices.shape();
  out.insert(MOKA_TRY(new_axis_of(call, "axis", indices.rank())), depth);
  return tensor_result(call, dtype, out);
}

Status one_hot_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& indices = call.in("indices");
  const int axis = MOKA_TRY(new_axis_of(call, "axis", indices.shape.rank()));
  const int64_t depth = out[0].shape[axis];
  const int64_t outer = indices.shape.count(0, axis), inner = indices.shape.count(axis, indices.shape.rank());
  fill_elements(out[0], 0, out[0].count(), *call.value("off_value"));
  const TensorView& on = *call.value("on_value");
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < inner; i++) {
      const int64_t hot = load_i64(indices, o * inner + i);
      if (hot >= 0 && hot < depth) fill_elements(out[0], (o * depth + hot) * inner + i, 1, on);
    }
  }
  return {};
}

}  // namespace

OpDef define_one_hot() {
  return OpBuilder("one_hot",
                   "A new axis that holds on_value at each index and off_value elsewhere. Indices outside set nothing.")
      .type_var("T", kPlain15)
      .in("indices", kI32)
      .in("one_hot_vector_size", kI32)
      .constant("axis", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, -1))
      .constant("on_value", "T")
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .constant("off_value", "T")
      .or_else(Tensor::scalar_i64(DType::int32, 0))
      .infer(infer_one_hot)
      .reference(one_hot_reference)
      .note("Indices outside set nothing, also negative ones.", "tf.one_hot")
      .note("axis is the position of the new axis in the result; -1 is the last.", "coremltools' definition")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
