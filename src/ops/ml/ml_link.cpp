// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/ml.h"

namespace moka::ops {
namespace {

double logistic(double v) {
  if (v >= 0) return 1 / (1 + std::exp(-v));
  double e = std::exp(v);
  return e / (1 + e);
}

/// Softmax of n values. `reference` adds a zero in front of them.
void softmax(const double* x, int64_t n, bool reference, double* y) {
  double top = reference ? 0 : -INFINITY;
  for (int64_t i = 0; i < n; ++i) top = std::max(top, x[i]);
  if (!std::isfinite(top)) top = 0;
  double sum = 0;
  if (reference) sum = *y++ = std::exp(-top);
  for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - top);
  if (reference) y[-1] /= sum;
  for (int64_t i = 0; i < n; ++i) y[i] /= sum;
}

Result<std::vector<Type>> infer_ml_link(const OpCall& call) {
  std::string_view mode = MOKA_TRY(call.text("mode"));
  int64_t n = ml::count_of(MOKA_TRY(ml::row_type(call, "x")));
  if (mode == "complement") {
    MOKA_TRY(ml::check_count(call, "x", 1));
    n = 2;
  } else if (mode == "softmax_with_reference" && n >= 0) {
    ++n;
  }
  return one(MOKA_TRY(ml::vectors_of(call, DType::fp64, n < 0 ? kAnyDim : n)));
}

void link(std::string_view mode, const double* x, int64_t n, double* y) {
  if (mode == "logit") {
    for (int64_t i = 0; i < n; ++i) y[i] = logistic(x[i]);
  } else if (mode == "probit") {
    for (int64_t i = 0; i < n; ++i) y[i] = ml::normal_cdf(x[i]);
  } else if (mode == "complement") {
    y[0] = 1 - x[0];
    y[1] = x[0];
  } else if (mode == "normalize") {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    for (int64_t i = 0; i < n; ++i) y[i] = sum > 0 ? x[i] / sum : 1.0 / static_cast<double>(n);
  } else {
    softmax(x, n, mode == "softmax_with_reference", y);
  }
}

Status ml_link_reference(const OpCall& call, std::span<const TensorView> out) {
  std::string_view mode = MOKA_TRY(call.text("mode"));
  const ml::Rows rows = MOKA_TRY(ml::rows_of(call, call.in("x")));
  const double* x = call.in("x").as<double>();
  double* y = out[0].as<double>();
  const int64_t step = rows.count == 0 ? 0 : out[0].count() / rows.count;
  for (int64_t r = 0; r < rows.count; ++r) link(mode, x + r * rows.length, rows.length, y + r * step);
  return {};
}

}  // namespace

OpDef define_ml_link() {
  return ml::define("ml_link",
                    "Turns scores into probabilities: logit and probit elementwise, softmax, softmax with a class of "
                    "score 0 in front, complement (1 - x, x), or division by the sum.")
      .in("x", ml::kF64)
      .constant("mode", kString)
      .one_of({"logit", "probit", "softmax", "softmax_with_reference", "complement", "normalize"})
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_link)
      .reference(ml_link_reference)
      .build();
}

}  // namespace moka::ops
