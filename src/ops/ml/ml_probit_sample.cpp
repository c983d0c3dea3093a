// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/common/ml.h"
#include "ops/common/random.h"

namespace moka::ops {
namespace {

/// A standard normal number whose magnitude is at most `limit`. Rejection succeeds with a probability of 0.6 or more.
double truncated_normal(Draw& draw, double limit) {
  for (;;) {
    if (limit < 1) {
      const double z = limit * (2 * draw.uniform() - 1);
      if (draw.uniform() <= std::exp(-z * z / 2)) return z;
      continue;
    }
    const double radius = std::sqrt(-2 * std::log(1 - draw.uniform()));
    const double z = radius * std::cos(2 * std::numbers::pi * draw.uniform());
    if (std::abs(z) <= limit) return z;
  }
}

Result<std::vector<Type>> infer_ml_probit_sample(const OpCall& call) {
  for (const char* p : {"mean", "variance"}) MOKA_TRY(ml::check_count(call, p, 1));
  for (const char* p : {"scale", "truncation"})
    if (call.has(p)) MOKA_TRY(ml::check_count(call, p, 1));
  MOKA_TRY(call.integer("seed"));
  return one(Type::scalar(DType::fp64));
}

/// The number of an optional input; `missing` where it is absent or NaN.
double number_or(const OpCall& call, std::string_view param, double missing) {
  const double v = call.has(param) ? load_f64(call.in(param), 0) : missing;
  return std::isnan(v) ? missing : v;
}

Status ml_probit_sample_reference(const OpCall& call, std::span<const TensorView> out) {
  const double mean = load_f64(call.in("mean"), 0), variance = load_f64(call.in("variance"), 0);
  const double scale = number_or(call, "scale", 1);
  const double limit = number_or(call, "truncation", std::numeric_limits<double>::infinity());
  Draw draw = MOKA_TRY(Draw::start(call));
  const double z = limit > 0 ? truncated_normal(draw, limit) : 0;
  const double sum = mean + scale * std::sqrt(variance) * z;
  store_f64(out[0], 0, 0.5 * std::erfc(-sum / std::numbers::sqrt2));
  return {};
}

}  // namespace

OpDef define_ml_probit_sample() {
  OpBuilder b = ml::define("ml_probit_sample",
                           "The probability Phi(s) of a random s from a normal distribution, whose standard deviation "
                           "is multiplied by `scale` and which is truncated at `truncation` deviations from its mean.");
  b.in("mean", ml::kF64)
      .in("variance", ml::kF64)
      .in("scale", ml::kNumeric)
      .optional()
      .in("truncation", ml::kNumeric)
      .optional();
  return finish_random(b, infer_ml_probit_sample, ml_probit_sample_reference)
      .note("A missing scale, or NaN, is 1; a missing truncation is none.", "the specification leaves this open")
      .build();
}

}  // namespace moka::ops
