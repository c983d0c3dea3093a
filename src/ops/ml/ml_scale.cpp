// SPDX-License-Identifier: Apache-2.0
#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_scale(const OpCall& call) {
  int64_t n = ml::count_of(MOKA_TRY(ml::row_type(call, "x")));
  for (const char* p : {"shift", "scale"}) {
    int64_t k = MOKA_TRY(ml::vector_length(call, p));
    if (k != 1 && n >= 0 && k != n) return call.error(p, cat("1 or ", n, " elements"), cat(k));
  }
  const Type& x = call.type("x");
  return one(x.is_ranked() ? Type::tensor(DType::fp64, x.shape()) : Type::unranked(DType::fp64));
}

Status ml_scale_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  auto shift = ml::span_of<double>(call.in("shift"));
  auto scale = ml::span_of<double>(call.in("scale"));
  double* y = out[0].as<double>();
  const ml::Rows rows = MOKA_TRY(ml::rows_of(call, x));
  for (int64_t r = 0, i = 0; r < rows.count; ++r)
    for (size_t k = 0; k < static_cast<size_t>(rows.length); ++k, ++i)
      y[i] = scale[scale.size() == 1 ? 0 : k] * (load_f64(x, i) + shift[shift.size() == 1 ? 0 : k]);
  return {};
}

}  // namespace

OpDef define_ml_scale() {
  return ml::define("ml_scale", "scale * (x + shift) in double; one shift or scale for all elements, or one each.")
      .in("x", ml::kNumeric)
      .constant("shift", ml::kF64)
      .constant("scale", ml::kF64)
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_scale)
      .reference(ml_scale_reference)
      .build();
}

}  // namespace moka::ops
