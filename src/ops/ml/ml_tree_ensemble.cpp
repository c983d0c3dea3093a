// SPDX-License-Identifier: Apache-2.0
#include "ops/common/ml.h"

namespace moka::ops {
namespace {

enum Mode : uint8_t { less_equal, less, greater_equal, greater, equal, not_equal, leaf };

Result<std::vector<Type>> infer_ml_tree_ensemble(const OpCall& call) {
  int64_t n = MOKA_TRY(ml::vector_length(call, "mode"));
  int64_t dims = MOKA_TRY(ml::vector_length(call, "base"));
  for (const char* p : {"feature", "threshold", "on_true", "on_false", "missing_true", "single"})
    MOKA_TRY(ml::check_length(call, p, n));
  MOKA_TRY(ml::vector_length(call, "roots"));
  int64_t leaves = MOKA_TRY(ml::vector_length(call, "leaf_index"));
  MOKA_TRY(ml::check_length(call, "leaf_value", leaves));

  int64_t features = ml::count_of(MOKA_TRY(ml::row_type(call, "x")));
  auto mode = ml::span_of<uint8_t>(*call.value("mode"));
  auto feature = ml::span_of<int32_t>(*call.value("feature"));
  auto on_true = ml::span_of<int32_t>(*call.value("on_true"));
  auto on_false = ml::span_of<int32_t>(*call.value("on_false"));
  for (int64_t i = 0; i < n; ++i) {
    auto k = static_cast<size_t>(i);
    if (mode[k] > leaf) return call.error("mode", "0 to 6", cat(int{mode[k]}));
    if (mode[k] == leaf) {
      if (on_true[k] < 0 || on_true[k] > on_false[k] || on_false[k] > leaves)
        return call.error(cat("leaf ", i, " has values ", on_true[k], " to ", on_false[k], " of ", leaves));
      continue;
    }
    if (on_true[k] <= i || on_true[k] >= n || on_false[k] <= i || on_false[k] >= n)
      return call.error(
          cat("node ", i, " has children ", on_true[k], " and ", on_false[k], ": expected ", i + 1, " to ", n - 1));
    if (feature[k] < 0 || (features >= 0 && feature[k] >= features))
      return call.error(cat("node ", i, " reads feature ", feature[k], " of ", features));
  }
  for (int32_t r : ml::span_of<int32_t>(*call.value("roots")))
    if (r < 0 || r >= n) return call.error("roots", cat("0 to ", n - 1), cat(r));
  for (int32_t d : ml::span_of<int32_t>(*call.value("leaf_index")))
    if (d < 0 || d >= dims) return call.error("leaf_index", cat("0 to ", dims - 1), cat(d));
  return one(MOKA_TRY(ml::vectors_of(call, DType::fp64, dims)));
}

bool takes_true(uint8_t mode, double x, double threshold) {
  switch (mode) {
    case less_equal: return x <= threshold;
    case less: return x < threshold;
    case greater_equal: return x >= threshold;
    case greater: return x > threshold;
    case equal: return x == threshold;
    default: return x != threshold;
  }
}

Status ml_tree_ensemble_reference(const OpCall& call, std::span<const TensorView> out) {
  const double* x = call.in("x").as<double>();
  const auto* mode = call.in("mode").as<uint8_t>();
  const auto* feature = call.in("feature").as<int32_t>();
  const auto* threshold = call.in("threshold").as<double>();
  const auto* on_true = call.in("on_true").as<int32_t>();
  const auto* on_false = call.in("on_false").as<int32_t>();
  const auto* missing_true = call.in("missing_true").as<uint8_t>();
  const auto* leaf_index = call.in("leaf_index").as<int32_t>();
  const auto* leaf_value = call.in("leaf_value").as<double>();
  const auto* single = call.in("single").as<uint8_t>();
  const TensorView& base = call.in("base");
  double* y = out[0].as<double>();
  const ml::Rows rows = MOKA_TRY(ml::rows_of(call, call.in("x")));
  for (int64_t r = 0; r < rows.count; ++r, x += rows.length, y += base.count()) {
    std::copy_n(base.as<double>(), base.count(), y);
    for (int32_t node : ml::span_of<int32_t>(call.in("roots"))) {
      while (mode[node] != leaf) {
        double v = x[feature[node]];
        if (single[node] != 0) v = static_cast<float>(v);
        bool yes = v != v ? missing_true[node] != 0 : takes_true(mode[node], v, threshold[node]);
        node = yes ? on_true[node] : on_false[node];
      }
      for (int32_t i = on_true[node]; i < on_false[node]; ++i) y[leaf_index[i]] += leaf_value[i];
    }
  }
  return {};
}

}  // namespace

OpDef define_ml_tree_ensemble() {
  constexpr DTypes i32 = only(DType::int32);
  return ml::define(
             "ml_tree_ensemble",
             "Base values plus the values of the leaf that each tree reaches. The nodes of all trees are in one list, "
             "children after their parent. A leaf (mode 6) adds leaf_value[on_true..on_false). Nodes marked "
             "`single` round their feature to float32 before they compare it.")
      .in("x", ml::kF64)
      .constant("mode", only(DType::uint8))
      .constant("feature", i32)
      .constant("threshold", ml::kF64)
      .constant("on_true", i32)
      .constant("on_false", i32)
      .constant("missing_true", kBool)
      .constant("roots", i32)
      .constant("leaf_index", i32)
      .constant("leaf_value", ml::kF64)
      .constant("base", ml::kF64)
      .constant("single", kBool)
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_tree_ensemble)
      .reference(ml_tree_ensemble_reference)
      .note(
          "A missing (NaN) feature goes where the node says. Thresholds are compared in double, or in float32 if "
          "the node asks for it.",
          "TreeEnsemble.proto; xgboost's and scikit-learn's predictions")
      .build();
}

}  // namespace moka::ops
