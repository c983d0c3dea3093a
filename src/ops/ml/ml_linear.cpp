// SPDX-License-Identifier: Apache-2.0
#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_linear(const OpCall& call) {
  const TensorView& w = *call.value("weights");
  if (w.shape.rank() != 2) return call.error("weights", "a matrix", cat(w.shape));
  MOKA_TRY(ml::check_length(call, "offset", w.shape[0]));
  MOKA_TRY(ml::check_count(call, "x", w.shape[1]));
  return one(MOKA_TRY(ml::vectors_of(call, DType::fp64, w.shape[0])));
}

Status ml_linear_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& w = call.in("weights");
  const double* x = call.in("x").as<double>();
  const double* offset = call.in("offset").as<double>();
  double* y = out[0].as<double>();
  const int64_t n = w.shape[1], m = w.shape[0];
  const ml::Rows rows = MOKA_TRY(ml::rows_of(call, call.in("x")));
  for (int64_t r = 0; r < rows.count; ++r, x += n, y += m) {
    const double* row = w.as<double>();
    for (int64_t i = 0; i < m; ++i, row += n) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += row[k] * x[k];
      y[i] = sum + offset[i];
    }
  }
  return {};
}

}  // namespace

OpDef define_ml_linear() {
  return ml::define("ml_linear", "weights * x + offset, in double.")
      .in("x", ml::kF64)
      .constant("weights", ml::kF64)
      .constant("offset", ml::kF64)
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_linear)
      .reference(ml_linear_reference)
      .build();
}

}  // namespace moka::ops
