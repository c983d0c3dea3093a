#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer(const OpCall& call) {
  int64_t k = MOKA_TRY(ml::vector_length(call, "indices"));
  int64_t n = ml::count_of(call.type("x"));
  for (int64_t i : ml::span_of<int64_t>(*call.value("indices")))
    if (i < 0 || (n >= 0 && i >= n)) return call.error("indices", cat("0 to ", n - 1), cat(i));
  return one(ml::vector_of(call.dtype("x"), k));
}

Status reference(const OpCall& call, std::span<const TensorView> out) {
  auto indices = ml::span_of<int64_t>(call.in("indices"));
  for (size_t i = 0; i < indices.size(); ++i) copy_element(out[0], static_cast<int64_t>(i), call.in("x"), indices[i]);
  return {};
}

}  // namespace

OpDef define_ml_extract() {
  return ml::define("ml_extract", "The elements of x, counted row-major, at `indices`.")
      .in("x", kEverything)
      .constant("indices", ml::kI64)
      .infer(infer)
      .reference(reference)
      .traits(Trait::moves_data_only)
      .build();
}

}  // namespace moka::ops
