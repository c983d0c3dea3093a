// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ops/common/random.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_random_normal(const OpCall& call) {
  MOKA_TRY(call.number("mean"));
  const double deviation = MOKA_TRY(call.number("stddev"));
  if (!(deviation >= 0)) return call.error("stddev", "0 or more", cat(deviation));
  MOKA_TRY(call.integer("seed"));
  return drawn_type(call, MOKA_TRY(float_type_of(call, {"mean", "stddev"})));
}

/// Box-Muller: two uniform numbers give two normal ones.
Status random_normal_reference(const OpCall& call, std::span<const TensorView> out) {
  const double mean = MOKA_TRY(call.number("mean")), deviation = MOKA_TRY(call.number("stddev"));
  Draw draw = MOKA_TRY(Draw::start(call));
  const int64_t n = out[0].count();
  for (int64_t i = 0; i < n; i += 2) {
    const double radius = deviation * std::sqrt(-2 * std::log(1 - draw.uniform()));
    const double angle = 2 * std::numbers::pi * draw.uniform();
    store_f64(out[0], i, mean + radius * std::cos(angle));
    if (i + 1 < n) store_f64(out[0], i + 1, mean + radius * std::sin(angle));
  }
  return {};
}

}  // namespace

OpDef define_random_normal() {
  OpBuilder b("random_normal",
              "Random values of a normal distribution. A seed of 0 or more always gives the same values.");
  b.type_var("T", kF16F32)
      .in("shape", kI32)
      .constant("mean", "T")
      .or_else(Tensor::scalar(DType::fp32, 0))
      .constant("stddev", "T")
      .or_else(Tensor::scalar(DType::fp32, 1));
  return finish_random(b, infer_random_normal, random_normal_reference)
      .note("The Box-Muller method in double, rounded once.", "the definition tells only the distribution")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
