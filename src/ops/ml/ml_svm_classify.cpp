// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_svm_classify(const OpCall& call) {
  int64_t classes = MOKA_TRY(ml::vector_length(call, "counts"));
  if (classes < 2) return call.error("counts", "at least two classes", cat(classes));
  int64_t vectors = 0;
  for (int64_t c : ml::span_of<int64_t>(*call.value("counts"))) {
    if (c < 0 || c > (int64_t{1} << 40)) return call.error("counts", "a count of support vectors", cat(c));
    vectors += c;
  }
  const TensorView& a = *call.value("coefficients");
  if (a.shape.rank() != 2 || a.shape[0] != classes - 1 || a.shape[1] != vectors)
    return call.error("coefficients", cat("[", classes - 1, ", ", vectors, "]"), cat(a.shape));
  int64_t pairs = classes * (classes - 1) / 2;
  MOKA_TRY(ml::check_length(call, "rho", pairs));
  if (call.has("prob_a") != call.has("prob_b")) return call.error("expected both or none of prob_a and prob_b");
  if (call.has("prob_a")) {
    MOKA_TRY(ml::check_length(call, "prob_a", pairs));
    MOKA_TRY(ml::check_length(call, "prob_b", pairs));
  }
  MOKA_TRY(ml::check_count(call, "x", vectors));
  return one(MOKA_TRY(ml::vectors_of(call, DType::fp64, classes)));
}

/// Platt's sigmoid, clamped away from 0 and 1.
double pair_probability(double decision, double a, double b) {
  double f = decision * a + b;
  double p = f >= 0 ? std::exp(-f) / (1 + std::exp(-f)) : 1 / (1 + std::exp(f));
  return std::min(std::max(1e-7, p), 1 - 1e-7);  // also clamps NaN, because LIBSVM produces models with NaN decisions
}

/// Class probabilities from pairwise ones: the second method of Wu, Lin and Weng, "Probability Estimates for
/// Multi-class Classification by Pairwise Coupling" (2004). `r` is k x k.
void couple(const std::vector<double>& r, size_t k, double* p) {
  std::vector<double> q(k * k, 0.0), qp(k);
  for (size_t t = 0; t < k; ++t)
    for (size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += r[j * k + t] * r[j * k + t];
      q[t * k + j] = -r[j * k + t] * r[t * k + j];
    }
  std::fill_n(p, k, 1.0 / static_cast<double>(k));
  const double tolerance = 0.005 / static_cast<double>(k);
  const size_t limit = std::max<size_t>(100, k);
  for (size_t step = 0; step < limit; ++step) {
    double pqp = 0;
    for (size_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (size_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
      pqp += p[t] * qp[t];
    }
    double error = 0;
    for (size_t t = 0; t < k; ++t) error = std::max(error, std::abs(qp[t] - pqp));
    if (error < tolerance) break;
    for (size_t t = 0; t < k; ++t) {
      double diff = (pqp - qp[t]) / q[t * k + t];
      p[t] += diff;
      pqp = (pqp + diff * (diff * q[t * k + t] + 2 * qp[t])) / ((1 + diff) * (1 + diff));
      for (size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + diff * q[t * k + j]) / (1 + diff);
        p[j] /= 1 + diff;
      }
    }
  }
}

/// Adds the support vectors of class `c`, those from `begin` to `end`, to its decisions with all other classes. `sums`
/// is k x k; the decision of two classes is at the row of the lower one. Each decision is one sum in the order of the
/// vectors; two advance together, because each waits for its last addition.
void add_class(std::vector<double>& sums, int64_t k, int64_t c, int64_t begin, int64_t end, const double* alpha,
               int64_t vectors, const double* kernel) {
  const auto at = [&](int64_t other) -> double& {
    return sums[static_cast<size_t>(std::min(c, other) * k + std::max(c, other))];
  };
  const auto other = [&](int64_t row) { return row < c ? row : row + 1; };
  for (int64_t row = 0; row < k - 1; row += 2) {
    const int64_t next = std::min(row + 1, k - 2);  // of an odd number the last one twice
    const double *x = alpha + row * vectors, *y = alpha + next * vectors;
    double a = at(other(row)), b = at(other(next));
    for (int64_t s = begin; s < end; ++s) {
      a += x[s] * kernel[s];
      b += y[s] * kernel[s];
    }
    at(other(row)) = a;
    at(other(next)) = b;
  }
}

Status ml_svm_classify_reference(const OpCall& call, std::span<const TensorView> out) {
  auto counts = ml::span_of<int64_t>(call.in("counts"));
  const double* kernel = call.in("x").as<double>();
  const double* alpha = call.in("coefficients").as<double>();
  const double* rho = call.in("rho").as<double>();
  const double* a = call.has("prob_a") ? call.in("prob_a").as<double>() : nullptr;
  const double* b = a != nullptr ? call.in("prob_b").as<double>() : nullptr;
  size_t k = counts.size();
  int64_t vectors = call.in("coefficients").shape[1];
  std::vector<double> r(a != nullptr ? k * k : 0), sums(k * k);
  const ml::Rows rows = MOKA_TRY(ml::rows_of(call, call.in("x")));
  for (int64_t row = 0; row < rows.count; ++row, kernel += vectors) {
    double* y = out[0].as<double>() + row * static_cast<int64_t>(k);
    std::fill_n(y, k, 0.0);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t i = 0, begin = 0; i < static_cast<int64_t>(k); begin += counts[static_cast<size_t>(i++)])
      add_class(sums, static_cast<int64_t>(k), i, begin, begin + counts[static_cast<size_t>(i)], alpha, vectors,
                kernel);
    size_t pair = 0;
    for (size_t i = 0; i < k; ++i)
      for (size_t j = i + 1; j < k; ++j, ++pair) {
        const double decision = sums[i * k + j] - rho[pair];
        if (a != nullptr) {
          r[i * k + j] = pair_probability(decision, a[pair], b[pair]);
          r[j * k + i] = 1 - r[i * k + j];
        } else {
          y[decision > 0 ? i : j] += 1;
        }
      }
    if (a == nullptr) {
      for (size_t i = 0; i < k; ++i) y[i] /= static_cast<double>(pair);
    } else if (k == 2) {
      y[0] = r[1];
      y[1] = r[2];
    } else {
      couple(r, k, y);
    }
  }
  return {};
}

}  // namespace

OpDef define_ml_svm_classify() {
  return ml::define(
             "ml_svm_classify",
             "Scores of classes from the kernel values of a one-against-one support vector machine: probabilities by "
             "pairwise coupling where prob_a and prob_b are given, else the share of votes.")
      .in("x", ml::kF64)
      .constant("coefficients", ml::kF64)
      .constant("rho", ml::kF64)
      .constant("counts", ml::kI64)
      .constant("prob_a", ml::kF64)
      .optional()
      .constant("prob_b", ml::kF64)
      .optional()
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_svm_classify)
      .reference(ml_svm_classify_reference)
      .note("Votes and pairwise coupling are those of LIBSVM, also when decisions are NaN.", "libsvm's svm.cpp")
      .note(
          "Two classes are not coupled: each has the pairwise probability itself. scikit-learn's copy of LIBSVM "
          "couples them too, which moves a probability by up to about 0.02.",
          "svm_predict_probability of LIBSVM 3.37; coremltools' test_SVC.py, which on macOS accepts 1e-5 from LIBSVM "
          "but 0.005 from scikit-learn for two classes, and gives the coupling as the reason")
      .build();
}

}  // namespace moka::ops
