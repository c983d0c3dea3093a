// SPDX-License-Identifier: Apache-2.0
#include "ops/common/random.h"

#include <array>

namespace moka::ops {

Result<std::vector<Type>> drawn_type(const OpCall& call, DType like) {
  const Type& given = call.type("shape");
  if (given.is_ranked() && given.rank() != 1) return call.error("shape", "a vector", cat("shape ", given.shape()));
  const TensorView* value = call.value("shape");
  if (value == nullptr) {
    if (!given.is_ranked() || given.shape()[0] < 0) return one(Type::unranked(like));
    if (given.shape()[0] > kMaxRank)
      return call.error("shape", cat("at most ", kMaxRank, " dimensions"), cat(given.shape()[0]));
    Shape unknown;
    for (int64_t i = 0; i < given.shape()[0]; i++) unknown.push_back(kAnyDim);
    return one(Type::tensor(like, unknown));
  }
  const Ints dims = MOKA_TRY(call.ints("shape"));
  for (int64_t d : dims) {
    if (d < 0) return call.error("shape", "dimensions of 0 or more", cat(d));
  }
  const Shape shape = MOKA_TRY(Shape::make(dims.span()));
  MOKA_TRY(expect_countable(call, shape));
  return one(Type::tensor(like, shape));
}

Result<DType> float_type_of(const OpCall& call, std::initializer_list<std::string_view> params) {
  DType found = DType::none;
  for (std::string_view p : params) {
    if (!call.has(p)) continue;
    const DType t = call.dtype(p);
    if (found != DType::none && t != found)
      return call.error(p, cat("the type of the other parameters, ", found), cat(t));
    found = t;
  }
  if (found == DType::none) found = call.value(*params.begin())->dtype;
  if (!is_float(found)) return call.error(*params.begin(), "a float", cat(found));
  return found;
}

Result<Draw> Draw::start(const OpCall& call) {
  const int64_t seed = MOKA_TRY(call.integer("seed"));
  Draw d;
  if (seed >= 0) {
    d.own_.state = static_cast<uint64_t>(seed) ^ 0x9d2c5680efc60000u;  // makes the stream differ from those of models
  } else if (call.random != nullptr) {
    d.shared_ = call.random;
  } else {
    return fail(ErrorCode::internal, "operation '", call.name(), "' draws without a random source");
  }
  return d;
}

OpBuilder& finish_random(OpBuilder& b, InferFn infer, ReferenceFn reference) {
  return b.constant("seed", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, -1))
      .infer(std::move(infer))
      .reference(std::move(reference))
      .traits(Trait::random)
      .note(kSeedNote.text, kSeedNote.evidence);
}

}  // namespace moka::ops
