// SPDX-License-Identifier: Apache-2.0
#include "ops/common/random.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_random_uniform(const OpCall& call) {
  const double low = MOKA_TRY(call.number("low")), high = MOKA_TRY(call.number("high"));
  if (!(low <= high)) return call.error("high", cat("at least low, ", low), cat(high));
  MOKA_TRY(call.integer("seed"));
  return drawn_type(call, MOKA_TRY(float_type_of(call, {"low", "high"})));
}

Status random_uniform_reference(const OpCall& call, std::span<const TensorView> out) {
  const double low = MOKA_TRY(call.number("low")), high = MOKA_TRY(call.number("high"));
  Draw draw = MOKA_TRY(Draw::start(call));
  const TensorView& y = out[0];
  const int digits = y.dtype == DType::fp16 ? 11 : y.dtype == DType::fp32 ? 24 : 53;
  const int64_t n = y.count();
  for (int64_t i = 0; i < n; i++) {
    const double u = draw.uniform(digits);
    store_f64(y, i, low * (1 - u) + high * u);
    if (low < high && load_f64(y, i) >= high) store_f64(y, i, low);
  }
  return {};
}

}  // namespace

OpDef define_random_uniform() {
  OpBuilder b("random_uniform",
              "Random values, uniformly distributed in [low, high). A seed of 0 or more always gives the same values.");
  b.type_var("T", kF16F32)
      .in("shape", kI32)
      .constant("low", "T")
      .or_else(Tensor::scalar(DType::fp32, 0))
      .constant("high", "T")
      .or_else(Tensor::scalar(DType::fp32, 1));
  return finish_random(b, infer_random_uniform, random_uniform_reference)
      .note("low is included and high is not, also after rounding to float16. low = high gives that value.",
            "numpy.random.uniform's interval")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
