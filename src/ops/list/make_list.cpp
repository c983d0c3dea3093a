// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/lists.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<int64_t> initial_length(const OpCall& call) {
  const int64_t n = MOKA_TRY(call.integer("init_length"));
  if (n < 0 || n > kMaxListLength) return call.error("init_length", cat("a length from 0 to ", kMaxListLength), cat(n));
  return n;
}

Result<std::vector<Type>> infer_make_list(const OpCall& call) {
  const std::string_view name = MOKA_TRY(call.text("dtype"));
  const DType dtype = dtype_from_string(name);
  if (dtype == DType::none) return call.error("dtype", "an element type", cat("'", name, "'"));
  Shape shape;
  for (const Arg& a : call.args("elem_shape")) {
    if (a.value == nullptr || !a.type->is_tensor() || a.value->count() != 1) {
      return call.error("elem_shape", "known sizes, or names of unknown ones", cat(*a.type));
    }
    if (shape.rank() == kMaxRank) return call.error("elem_shape", cat("at most ", kMaxRank, " dimensions"), "more");
    const bool named = a.value->dtype == DType::string;
    const int64_t d = named ? kAnyDim : load_i64(*a.value, 0);
    shape.push_back(d < 0 ? kAnyDim : d);
  }
  int64_t length = kAnyDim;
  if (call.is_known("init_length")) length = MOKA_TRY(initial_length(call));
  if (MOKA_TRY(call.flag("dynamic_length"))) length = kAnyDim;
  return one(Type::list(Type::tensor(dtype, shape), length));
}

Status make_list_reference(const OpCall& call, std::span<const TensorView> out) {
  const int64_t n = MOKA_TRY(initial_length(call));
  out[0].list().reset(static_cast<size_t>(n));
  return {};
}

}  // namespace

OpDef define_make_list() {
  return OpBuilder(
             "make_list",
             "A list of tensors of one type, none of them written yet. It grows when written beyond its end unless "
             "its length is fixed.")
      .in("init_length", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .constant("dynamic_length", kBool)
      .or_else(Tensor::boolean(true))
      .variadic_any("elem_shape")
      .constant("dtype", kString)
      .or_else(Tensor::text("fp32"))
      .infer(infer_make_list)
      .reference(make_list_reference)
      .note(
          "Elements not yet written read as zeros if their shape is known. Writing beyond the end grows a list of "
          "dynamic length.",
          "TensorFlow's TensorArray, from which the operation comes")
      .build();
}

}  // namespace moka::ops
