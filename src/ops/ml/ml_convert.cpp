// SPDX-License-Identifier: Apache-2.0
#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_convert(const OpCall& call) {
  DType t = dtype_from_string(MOKA_TRY(call.text("dtype")));
  DType from = call.dtype("x");
  if (bits(t) < 8 && t != DType::string) return call.error("dtype", "a type of at least one byte", cat(t));
  if ((t == DType::string) != (from == DType::string))
    return call.error("x", cat("a value convertible to ", t), cat(from));
  const Type& x = call.type("x");
  if (!call.has("shape")) return one(x.is_ranked() ? Type::tensor(t, x.shape()) : Type::unranked(t));
  Ints dims = MOKA_TRY(call.ints("shape"));
  Shape shape = MOKA_TRY(Shape::make(dims.span()));
  for (int64_t d : dims)
    if (d < 0) return call.error("shape", "sizes", cat(shape));
  MOKA_TRY(ml::check_count(call, "x", MOKA_TRY(shape.checked_count())));
  if (!MOKA_TRY(ml::has_rows(call))) return one(Type::tensor(t, shape));
  if (shape.rank() == kMaxRank)
    return call.error("shape", cat("at most ", kMaxRank - 1, " sizes of a row"), cat(shape));
  shape.insert(0, x.is_ranked() && x.rank() > 0 ? x.shape()[0] : kAnyDim);
  return one(Type::tensor(t, shape));
}

Status ml_convert_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const TensorView& y = out[0];
  const int64_t n = x.count();
  if (x.dtype == y.dtype) {
    copy_elements(y, 0, x, 0, n);
    return {};
  }
  bool exact = !is_float(x.dtype) && !is_float(y.dtype);
  for (int64_t i = 0; i < n; ++i) {
    if (exact)
      store_i64(y, i, load_i64(x, i));
    else
      store_f64(y, i, load_f64(x, i));
  }
  return {};
}

}  // namespace

OpDef define_ml_convert() {
  return ml::define("ml_convert",
                    "x with another element type and, where `shape` is given, another shape of equally many elements.")
      .in("x", kEverything)
      .constant("dtype", kString)
      .constant("shape", kI32)
      .optional()
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_convert)
      .reference(ml_convert_reference)
      .build();
}

}  // namespace moka::ops
