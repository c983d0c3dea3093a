// SPDX-License-Identifier: Apache-2.0
#include "ops/common/categories.h"
#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_one_hot(const OpCall& call) {
  int64_t n = MOKA_TRY(ml::vector_length(call, "categories"));
  MOKA_TRY(ml::check_sorted(call, "categories"));
  MOKA_TRY(ml::check_length(call, "positions", n));
  for (int64_t p : ml::span_of<int64_t>(*call.value("positions")))
    if (p < 0 || p >= n) return call.error("positions", cat("0 to ", n - 1), cat(p));
  MOKA_TRY(call.text("handle_unknown"));
  MOKA_TRY(ml::check_count(call, "x", 1));
  if ((call.dtype("x") == DType::string) != (call.value("categories")->dtype == DType::string))
    return call.error("x", cat("a value of type ", call.value("categories")->dtype), cat(call.dtype("x")));
  if (MOKA_TRY(call.flag("dense"))) return one(MOKA_TRY(ml::vectors_of(call, DType::fp64, n)));
  if (MOKA_TRY(ml::has_rows(call))) return call.error("rows", "dense vectors", "sparse ones");
  return one(ml::dict_of(false));
}

Status ml_one_hot_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const TensorView& categories = call.in("categories");
  bool dense = MOKA_TRY(call.flag("dense"));
  bool ignore = MOKA_TRY(call.text("handle_unknown")) == "ignore";
  const ml::Rows rows = MOKA_TRY(ml::rows_of(call, x));
  if (dense)
    std::fill_n(out[0].as<double>(), out[0].count(), 0.0);
  else
    ml::clear(out[0].dict(), false);
  for (int64_t r = 0; r < rows.count; ++r) {
    int64_t at = ml::find_sorted(categories, x, r);
    if (at < 0 && !ignore) return unknown_category(call, "categories", x, r);
    if (at < 0) continue;
    int64_t position = call.in("positions").as<int64_t>()[at];
    if (dense) {
      out[0].as<double>()[r * categories.count() + position] = 1;
    } else {
      out[0].dict().int_keys.push_back(position);
      out[0].dict().values.push_back(1);
    }
  }
  return {};
}

}  // namespace

OpDef define_ml_one_hot() {
  return ml::define(
             "ml_one_hot",
             "A vector with 1 at positions[i] where x equals categories[i]. Sparse (a dictionary by position) unless "
             "`dense`.")
      .in("x", kEverything)
      .constant("categories", ml::kKeys)
      .constant("positions", ml::kI64)
      .constant("handle_unknown", kString)
      .one_of({"error", "ignore"})
      .constant("dense", kBool)
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_one_hot)
      .reference(ml_one_hot_reference)
      .note("Unknown categories give an error or zeros, depending on handle_unknown.", "OneHotEncoder.proto")
      .build();
}

}  // namespace moka::ops
