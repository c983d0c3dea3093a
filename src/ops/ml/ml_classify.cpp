// SPDX-License-Identifier: Apache-2.0
#include "ops/common/ml.h"
#include "ops/common/sorting.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_classify(const OpCall& call) {
  int64_t n = MOKA_TRY(ml::vector_length(call, "classes"));
  if (n < 1) return call.error("classes", "at least one class", "none");
  MOKA_TRY(ml::check_count(call, "x", n));
  DType t = call.value("classes")->dtype;
  if (!MOKA_TRY(ml::has_rows(call))) return std::vector<Type>{Type::scalar(t), ml::dict_of(t == DType::string)};
  const Type scores = MOKA_TRY(ml::vectors_of(call, DType::fp64, n));
  return std::vector<Type>{ml::vector_of(t, scores.shape()[0]), scores};
}

Status ml_classify_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& classes = call.in("classes");
  const double* x = call.in("x").as<double>();
  const int64_t n = classes.count();
  if (MOKA_TRY(ml::has_rows(call))) {
    std::copy_n(x, out[1].count(), out[1].as<double>());
    const int64_t rows = out[0].count();
    if (classes.dtype == DType::int64)
      for (int64_t r = 0; r < rows; ++r)
        out[0].as<int64_t>()[r] = classes.as<int64_t>()[index_of_largest(x + r * n, n)];
    else
      for (int64_t r = 0; r < rows; ++r) copy_element(out[0], r, classes, index_of_largest(x + r * n, n));
    return {};
  }
  Dict& dict = out[1].dict();
  ml::clear(dict, classes.dtype == DType::string);
  for (int64_t i = 0; i < n; ++i) ml::append(dict, classes, i, x[i]);
  copy_element(out[0], 0, classes, index_of_largest(x, n));
  return {};
}

}  // namespace

OpDef define_ml_classify() {
  return ml::define("ml_classify",
                    "The class of the highest score, the first of equals, and all scores by class; with `rows` the "
                    "scores as a matrix.")
      .in("x", ml::kF64)
      .constant("classes", ml::kKeys)
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_classify)
      .reference(ml_classify_reference)
      .note("The first of equal scores wins.", "scikit-learn's predict")
      .note("NaN never wins.", "the specification leaves this open")
      .build();
}

}  // namespace moka::ops
