// SPDX-License-Identifier: Apache-2.0
#include "ops/common/random.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_random_bernoulli(const OpCall& call) {
  const double prob = MOKA_TRY(call.number("prob"));
  if (!(prob >= 0 && prob <= 1)) return call.error("prob", "a probability from 0 to 1", cat(prob));
  MOKA_TRY(call.integer("seed"));
  return drawn_type(call, MOKA_TRY(float_type_of(call, {"prob"})));
}

Status random_bernoulli_reference(const OpCall& call, std::span<const TensorView> out) {
  const double prob = MOKA_TRY(call.number("prob"));
  Draw draw = MOKA_TRY(Draw::start(call));
  const int64_t n = out[0].count();
  for (int64_t i = 0; i < n; i++) store_f64(out[0], i, draw.uniform() < prob ? 1 : 0);
  return {};
}

}  // namespace

OpDef define_random_bernoulli() {
  OpBuilder b("random_bernoulli",
              "1 with probability `prob`, else 0. A seed of 0 or more always gives the same values.");
  b.type_var("T", kF16F32).in("shape", kI32).constant("prob", "T").or_else(Tensor::scalar(DType::fp32, 0.5));
  return finish_random(b, infer_random_bernoulli, random_bernoulli_reference)
      .note("The result is 1 if a uniform number in [0, 1) is less than prob: never for 0, always for 1.",
            "coremltools' definition")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
