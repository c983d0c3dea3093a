// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_nearest_neighbors(const OpCall& call) {
  const TensorView& samples = *call.value("samples");
  if (samples.shape.rank() != 2) return call.error("samples", "a matrix", cat(samples.shape));
  int64_t classes = MOKA_TRY(call.integer("classes"));
  if (classes < 1 || classes > samples.shape[0])
    return call.error("classes", cat("1 to ", samples.shape[0]), cat(classes));
  MOKA_TRY(ml::check_length(call, "labels", samples.shape[0]));
  for (int64_t l : ml::span_of<int64_t>(*call.value("labels")))
    if (l < 0 || l >= classes) return call.error("labels", cat("0 to ", classes - 1), cat(l));
  int64_t k = MOKA_TRY(call.integer("k"));
  if (k < 1) return call.error("k", "at least 1", cat(k));
  MOKA_TRY(call.text("weighting"));
  MOKA_TRY(ml::check_count(call, "x", samples.shape[1]));
  return one(MOKA_TRY(ml::vectors_of(call, DType::fp64, classes)));
}

Status ml_nearest_neighbors_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& samples = call.in("samples");
  const double* x = call.in("x").as<double>();
  const int64_t* labels = call.in("labels").as<int64_t>();
  bool inverse = MOKA_TRY(call.text("weighting")) == "inverse_distance";
  int64_t n = samples.shape[0], d = samples.shape[1];
  int64_t k = std::min(MOKA_TRY(call.integer("k")), n);
  std::vector<std::pair<double, int64_t>> near(static_cast<size_t>(n));
  double* y = out[0].as<double>();
  const int64_t classes = MOKA_TRY(call.integer("classes"));
  const ml::Rows rows = MOKA_TRY(ml::rows_of(call, call.in("x")));
  for (int64_t r = 0; r < rows.count; ++r, x += d, y += classes) {
    const float* row = samples.as<float>();
    for (int64_t i = 0; i < n; ++i, row += d) {
      double sum = 0;
      for (int64_t j = 0; j < d; ++j) sum += (x[j] - row[j]) * (x[j] - row[j]);
      near[static_cast<size_t>(i)] = {sum == sum ? sum : INFINITY, i};
    }
    std::partial_sort(near.begin(), near.begin() + k, near.end());
    std::fill_n(y, classes, 0.0);
    bool hit = near[0].first == 0;
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      auto [distance, sample] = near[static_cast<size_t>(i)];
      double weight = !inverse ? 1 : hit ? (distance == 0 ? 1 : 0) : 1 / std::sqrt(distance);
      y[labels[sample]] += weight;
      sum += weight;
    }
    for (int64_t c = 0; c < classes; ++c) y[c] = sum > 0 ? y[c] / sum : 1.0 / static_cast<double>(classes);
  }
  return {};
}

}  // namespace

OpDef define_ml_nearest_neighbors() {
  return ml::define(
             "ml_nearest_neighbors",
             "The share of each class among the k samples nearest to x by Euclidean distance, the first of equals, "
             "optionally weighted by the inverse of the distance. Samples at distance 0 then count alone.")
      .in("x", ml::kF64)
      .constant("samples", only(DType::fp32))
      .constant("labels", ml::kI64)
      .constant("classes", ml::kI64)
      .constant("k", ml::kI64)
      .constant("weighting", kString)
      .one_of({"uniform", "inverse_distance"})
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_nearest_neighbors)
      .reference(ml_nearest_neighbors_reference)
      .note("Samples at distance 0 count alone when weighting by the inverse of the distance.",
            "scikit-learn's KNeighborsClassifier")
      .build();
}

}  // namespace moka::ops
