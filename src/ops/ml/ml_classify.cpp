#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer(const OpCall& call) {
  int64_t n = MOKA_TRY(ml::vector_length(call, "classes"));
  if (n < 1) return call.error("classes", "at least one class", "none");
  MOKA_TRY(ml::check_count(call, "x", n));
  DType t = call.value("classes")->dtype;
  return std::vector<Type>{Type::scalar(t), ml::dict_of(t == DType::string)};
}

Status reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& classes = call.in("classes");
  const double* x = call.in("x").as<double>();
  int64_t best = 0;
  Dict& dict = out[1].dict();
  ml::clear(dict, classes.dtype == DType::string);
  for (int64_t i = 0; i < classes.count(); ++i) {
    ml::append(dict, classes, i, x[i]);
    if (x[i] > x[best] || (x[best] != x[best] && x[i] == x[i])) best = i;
  }
  copy_element(out[0], 0, classes, best);
  return {};
}

}  // namespace

OpDef define_ml_classify() {
  return ml::define("ml_classify", "The class of the highest score, the first of equals, and all scores by class.")
      .in("x", ml::kF64)
      .constant("classes", ml::kKeys)
      .infer(infer)
      .reference(reference)
      .note("The first of equal scores wins.", "scikit-learn's predict")
      .build();
}

}  // namespace moka::ops
