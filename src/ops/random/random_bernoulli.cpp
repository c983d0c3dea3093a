#include "ops/common/random.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer(const OpCall& call) {
  const double prob = MOKA_TRY(call.number("prob"));
  if (!(prob >= 0 && prob <= 1)) return call.error("prob", "a probability from 0 to 1", cat(prob));
  MOKA_TRY(call.integer("seed"));
  return drawn_type(call, MOKA_TRY(float_type_of(call, {"prob"})));
}

Status reference(const OpCall& call, std::span<const TensorView> out) {
  const double prob = MOKA_TRY(call.number("prob"));
  Draw draw = MOKA_TRY(Draw::start(call));
  const int64_t n = out[0].count();
  for (int64_t i = 0; i < n; i++) store_f64(out[0], i, draw.uniform() < prob ? 1 : 0);
  return {};
}

}  // namespace

OpDef define_random_bernoulli() {
  return OpBuilder("random_bernoulli", "1 with probability `prob`, else 0. A seed of 0 or more repeats its values.")
      .type_var("T", kF16F32)
      .in("shape", kI32)
      .constant("prob", "T")
      .or_else(Tensor::scalar(DType::fp32, 0.5))
      .constant("seed", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, -1))
      .infer(infer)
      .reference(reference)
      .traits(Trait::random)
      .note(kSeedNote.text, kSeedNote.evidence)
      .note("1 where a uniform number of [0, 1) is less than prob: 0 never, 1 always.", "coremltools' definition")
      .build();
}

}  // namespace moka::ops
