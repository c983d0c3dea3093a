// SPDX-License-Identifier: Apache-2.0
#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_feature_vectorize(const OpCall& call) {
  auto values = call.args("values");
  MOKA_TRY(ml::check_length(call, "dimensions", static_cast<int64_t>(values.size())));
  auto dimensions = ml::span_of<int64_t>(*call.value("dimensions"));
  const bool by_row = MOKA_TRY(ml::has_rows(call));
  int64_t total = 0, rows = kAnyDim;
  for (size_t i = 0; i < values.size(); ++i) {
    const Type& t = *values[i].type;
    int64_t d = dimensions[i];
    if (d < 0 || d > (int64_t{1} << 31)) return call.error("dimensions", "0 to 2^31", cat(d));
    total += d;
    if (total > (int64_t{1} << 31)) return call.error("dimensions", "at most 2^31 in all", cat(total));
    if (t.is_dict()) {
      if (ml::has_string_keys(t)) return call.error("values", "a dictionary with integer keys", cat(t));
      continue;
    }
    if (!t.is_tensor() || t.dtype() == DType::string) return call.error("values", "numbers or a dictionary", cat(t));
    Type row = t;
    if (by_row) {
      if (t.is_ranked() && t.rank() == 0) return call.error("values", "an axis of rows", cat(t));
      if (!t.is_ranked()) continue;
      const int64_t own = t.shape()[0];
      if (rows >= 0 && own >= 0 && own != rows)
        return call.error("values", cat(rows, " rows, as in an earlier value"), cat(t));
      if (rows < 0) rows = own;
      row = Type::tensor(t.dtype(), Shape(t.shape().dims().subspan(1)));
    }
    int64_t n = ml::count_of(row);
    if (n >= 0 && n != d) return call.error("values", cat("input ", i, " of ", d, " elements"), cat(n));
  }
  return one(by_row ? Type::tensor(DType::fp64, Shape{rows, total}) : ml::vector_of(DType::fp64, total));
}

Status scatter(const OpCall& call, const Dict& dict, int64_t d, double* y) {
  std::fill_n(y, d, 0.0);
  for (size_t i = 0; i < dict.size(); ++i) {
    int64_t key = dict.string_keys ? -1 : dict.int_keys[i];
    if (key < 0 || key >= d)
      return fail(ErrorCode::data, "operation '", call.name(), "': key ", key, " of a sparse vector is outside 0 to ",
                  d - 1);
    y[key] = dict.values[i];
  }
  return {};
}

Status ml_feature_vectorize_reference(const OpCall& call, std::span<const TensorView> out) {
  auto values = call.args("values");
  auto dimensions = ml::span_of<int64_t>(call.in("dimensions"));
  const int64_t rows = MOKA_TRY(ml::has_rows(call)) ? out[0].shape[0] : 1;
  double* y = out[0].as<double>();
  for (int64_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < values.size(); y += dimensions[i++]) {
      const TensorView& v = *values[i].value;
      const int64_t n = dimensions[i];
      if (values[i].type->is_dict()) {
        MOKA_TRY(scatter(call, v.dict(), n, y));
      } else if (v.dtype == DType::fp64) {
        std::copy_n(v.as<double>() + r * n, n, y);
      } else {
        for (int64_t k = 0; k < n; ++k) y[k] = load_f64(v, r * n + k);
      }
    }
  }
  return {};
}

}  // namespace

OpDef define_ml_feature_vectorize() {
  return ml::define("ml_feature_vectorize",
                    "All values one after the other as doubles. A dictionary with integer keys is a sparse vector of "
                    "dimensions[i] elements.")
      .variadic_any("values")
      .constant("dimensions", ml::kI64)
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_feature_vectorize)
      .reference(ml_feature_vectorize_reference)
      .build();
}

}  // namespace moka::ops
