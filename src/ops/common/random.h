// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ops/common/common.h"

/// Random numbers and type rules of the random operations.
namespace moka::ops {

/// Infers one output with the dimensions in parameter `shape` and the element type of `like`.
Result<std::vector<Type>> drawn_type(const OpCall& call, DType like);

/// The element type of the first of these parameters that is present, or else that of the first parameter's default.
Result<DType> float_type_of(const OpCall& call, std::initializer_list<std::string_view> params);

inline constexpr Note kSeedNote{
    "A seed of 0 or more gives the same numbers in every prediction and on every machine. Without one, each prediction "
    "draws new numbers. The generator is splitmix64.",
    "coremltools' definition names no generator, so values differ from Core ML's; tests/ops/random_test.cpp tests the "
    "distributions"};

/// Random numbers of one draw. A seed >= 0 starts a separate stream; otherwise they come from the model's stream.
class Draw {
 public:
  /// Errors: invalid_argument if the seed is not an integer, internal if an unseeded draw has no source.
  static Result<Draw> start(const OpCall& call);
  Draw(const Draw&) = delete;
  Draw(Draw&& o) noexcept : own_(o.own_), shared_(o.shared_) {}

  uint64_t bits() { return shared_ != nullptr ? shared_->next() : own_.next(); }
  /// A number in [0, 1) that is a multiple of 2^-digits, 1 <= digits <= 53.
  double uniform(int digits = 53) {
    return static_cast<double>(bits() >> (64 - digits)) / static_cast<double>(uint64_t{1} << digits);
  }

 private:
  Draw() = default;
  RandomSource own_;
  RandomSource* shared_ = nullptr;
};

/// Adds the parameter `seed`, the functions, the trait and the notes that every random operation has.
OpBuilder& finish_random(OpBuilder& b, InferFn infer, ReferenceFn reference);

}  // namespace moka::ops
