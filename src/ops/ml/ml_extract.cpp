// SPDX-License-Identifier: Apache-2.0
#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_extract(const OpCall& call) {
  int64_t k = MOKA_TRY(ml::vector_length(call, "indices"));
  int64_t n = ml::count_of(MOKA_TRY(ml::row_type(call, "x")));
  for (int64_t i : ml::span_of<int64_t>(*call.value("indices")))
    if (i < 0 || (n >= 0 && i >= n)) return call.error("indices", cat("0 to ", n - 1), cat(i));
  return one(MOKA_TRY(ml::vectors_of(call, call.dtype("x"), k)));
}

Status ml_extract_reference(const OpCall& call, std::span<const TensorView> out) {
  auto indices = ml::span_of<int64_t>(call.in("indices"));
  const ml::Rows rows = MOKA_TRY(ml::rows_of(call, call.in("x")));
  int64_t to = 0;
  if (call.dtype("x") == DType::fp64) {
    const double* x = call.in("x").as<double>();
    for (int64_t r = 0; r < rows.count; ++r, x += rows.length)
      for (int64_t i : indices) out[0].as<double>()[to++] = x[i];
    return {};
  }
  for (int64_t r = 0; r < rows.count; ++r)
    for (int64_t i : indices) copy_element(out[0], to++, call.in("x"), r * rows.length + i);
  return {};
}

}  // namespace

OpDef define_ml_extract() {
  return ml::define("ml_extract", "The elements of x, counted row-major, at `indices`.")
      .in("x", kEverything)
      .constant("indices", ml::kI64)
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_extract)
      .reference(ml_extract_reference)
      .traits(Trait::moves_data_only)
      .build();
}

}  // namespace moka::ops
