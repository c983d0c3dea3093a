// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_normalize(const OpCall& call) {
  MOKA_TRY(call.text("norm"));
  const Type& x = call.type("x");
  return one(x.is_ranked() ? Type::tensor(DType::fp64, x.shape()) : Type::unranked(DType::fp64));
}

void normalize(std::string_view norm, int64_t n, double* y) {
  double size = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (norm == "max")
      size = std::max(size, std::abs(y[i]));
    else
      size += norm == "l1" ? std::abs(y[i]) : y[i] * y[i];
  }
  if (norm == "l2") size = std::sqrt(size);
  if (size != 0)
    for (int64_t i = 0; i < n; ++i) y[i] /= size;
}

Status ml_normalize_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  std::string_view norm = MOKA_TRY(call.text("norm"));
  double* y = out[0].as<double>();
  for (int64_t i = 0; i < x.count(); ++i) y[i] = load_f64(x, i);
  const ml::Rows rows = MOKA_TRY(ml::rows_of(call, x));
  for (int64_t r = 0; r < rows.count; ++r) normalize(norm, rows.length, y + r * rows.length);
  return {};
}

}  // namespace

OpDef define_ml_normalize() {
  return ml::define("ml_normalize",
                    "x divided by its norm: the sum of magnitudes, the Euclidean norm or the greatest magnitude.")
      .in("x", ml::kNumeric)
      .constant("norm", kString)
      .one_of({"max", "l1", "l2"})
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_normalize)
      .reference(ml_normalize_reference)
      .note("If the norm is 0, x stays as it is.", "scikit-learn's Normalizer")
      .build();
}

}  // namespace moka::ops
