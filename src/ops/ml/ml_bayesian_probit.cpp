// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/ml.h"

namespace moka::ops {
namespace {

/// Error unless the rows (feature, value) are strictly ascending.
Status check_table(const OpCall& call) {
  const int64_t n = MOKA_TRY(ml::vector_length(call, "feature"));
  for (const char* p : {"value", "weight_mean", "weight_variance"}) MOKA_TRY(ml::check_length(call, p, n));
  const auto feature = ml::span_of<int64_t>(*call.value("feature")), value = ml::span_of<int64_t>(*call.value("value"));
  for (size_t i = 1; i < feature.size(); ++i)
    if (std::pair(feature[i - 1], value[i - 1]) >= std::pair(feature[i], value[i]))
      return call.error("feature", "ascending pairs of a feature and its value", "pairs out of order");
  for (double v : ml::span_of<double>(*call.value("weight_variance")))
    if (!(v >= 0) || std::isinf(v)) return call.error("weight_variance", "finite variances of 0 or more", cat(v));
  return {};
}

Result<std::vector<Type>> infer_ml_bayesian_probit(const OpCall& call) {
  MOKA_TRY(check_table(call));
  for (const char* p : {"bias_mean", "bias_variance"}) MOKA_TRY(call.number(p));
  const Type& x = call.type("x");
  if (x.is_ranked() && x.rank() != 1 && !(x.rank() == 2 && (x.shape()[1] == 2 || x.shape()[1] < 0)))
    return call.error("x", "a vector of values, or rows of a feature and its value", cat(x));
  if (call.has("optimism")) MOKA_TRY(ml::check_count(call, "optimism", 1));
  return std::vector<Type>(4, Type::scalar(DType::fp64));
}

Status ml_bayesian_probit_reference(const OpCall& call, std::span<const TensorView> out) {
  const auto feature = ml::span_of<int64_t>(call.in("feature")), value = ml::span_of<int64_t>(call.in("value"));
  const double* mean = call.in("weight_mean").as<double>();
  const double* variance = call.in("weight_variance").as<double>();
  double m = MOKA_TRY(call.number("bias_mean")), v = MOKA_TRY(call.number("bias_variance"));
  const auto add = [&](double f, double x) {
    size_t low = 0, high = feature.size();
    while (low < high) {
      const size_t mid = low + (high - low) / 2;
      const std::pair at{static_cast<double>(feature[mid]), static_cast<double>(value[mid])};
      if (at < std::pair(f, x))
        low = mid + 1;
      else
        high = mid;
    }
    if (low == feature.size() || static_cast<double>(feature[low]) != f || static_cast<double>(value[low]) != x) return;
    m += mean[low];
    v += variance[low];
  };
  const TensorView& x = call.in("x");
  if (x.shape.rank() == 2)
    for (int64_t i = 0; i < x.shape[0]; ++i) add(load_f64(x, 2 * i), load_f64(x, 2 * i + 1));
  else
    for (int64_t i = 0; i < x.count(); ++i) add(static_cast<double>(i), load_f64(x, i));
  const double optimism = call.has("optimism") ? load_f64(call.in("optimism"), 0) : 0;
  const double shift = std::isnan(optimism) ? 0 : optimism * std::sqrt(v), scale = std::sqrt(1 + v);
  const double results[] = {ml::normal_cdf(m / scale), m, v, ml::normal_cdf((m + shift) / scale)};
  for (size_t i = 0; i < 4; ++i) store_f64(out[i], 0, results[i]);
  return {};
}

}  // namespace

OpDef define_ml_bayesian_probit() {
  return ml::define("ml_bayesian_probit",
                    "Bayesian probit regression. Each pair of a feature and its value has a normally distributed "
                    "weight. The results are the probability, mean and variance of the sum of the weights of x, and "
                    "the probability with the mean shifted by `optimism` standard deviations.")
      .in("x", ml::kNumeric)
      .in("optimism", ml::kNumeric)
      .optional()
      .constant("feature", ml::kI64)
      .constant("value", ml::kI64)
      .constant("weight_mean", ml::kF64)
      .constant("weight_variance", ml::kF64)
      .constant("bias_mean", ml::kF64)
      .constant("bias_variance", ml::kF64)
      .infer(infer_ml_bayesian_probit)
      .reference(ml_bayesian_probit_reference)
      .note(
          "The probability is that of a standard normal link: Phi(mean / sqrt(1 + variance)).",
          "Graepel et al., Web-Scale Bayesian Click-Through Rate Prediction, ICML 2010, equation 2, with beta = 1; the "
          "format stores no other scale of the link")
      .note("Values that have no weight add nothing. An optimism of NaN is a missing one.",
            "the specification leaves this open")
      .build();
}

}  // namespace moka::ops
