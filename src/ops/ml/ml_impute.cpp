// SPDX-License-Identifier: Apache-2.0
#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_impute(const OpCall& call) {
  int64_t n = ml::count_of(MOKA_TRY(ml::row_type(call, "x")));
  int64_t k = MOKA_TRY(ml::vector_length(call, "imputed"));
  if (k != 1 && n >= 0 && k != n) return call.error("imputed", cat("1 or ", n, " elements"), cat(k));
  MOKA_TRY(ml::check_length(call, "replaced", 1));
  return one(call.type("x"));
}

bool same(double a, double b) { return a == b || (a != a && b != b); }

Status ml_impute_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const TensorView& replaced = call.in("replaced");
  const TensorView& imputed = call.in("imputed");
  bool one_for_all = imputed.count() == 1;
  const ml::Rows rows = MOKA_TRY(ml::rows_of(call, x));
  for (int64_t i = 0; i < x.count(); ++i) {
    bool missing = x.dtype == DType::string  ? x.as<std::string>()[i] == *replaced.as<std::string>()
                   : x.dtype == DType::int64 ? load_i64(x, i) == load_i64(replaced, 0)
                                             : same(x.as<double>()[i], *replaced.as<double>());
    copy_element(out[0], i, missing ? imputed : x, missing ? (one_for_all ? 0 : i % rows.length) : i);
  }
  return {};
}

}  // namespace

OpDef define_ml_impute() {
  return ml::define("ml_impute",
                    "x with each element that equals `replaced` (NaN equals NaN) replaced by the imputed value, "
                    "which is one "
                    "for all elements or one each.")
      .type_var("T", any_of(DType::fp64, DType::int64, DType::string))
      .in("x", "T")
      .constant("replaced", "T")
      .constant("imputed", "T")
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_impute)
      .reference(ml_impute_reference)
      .note("NaN as the replaced value matches NaN.", "Core ML's Imputer; scikit-learn's SimpleImputer")
      .build();
}

}  // namespace moka::ops
