#pragma once

#include <string_view>

#include "ops/common/common.h"

/// Draws shared by the random operations.
namespace moka::ops {

/// One output with the dimensions that parameter `shape` holds and the element type of `like`.
Result<std::vector<Type>> drawn_type(const OpCall& call, DType like);

/// The element type of the first of these parameters that is given, else that of the first's default.
Result<DType> float_type_of(const OpCall& call, std::initializer_list<std::string_view> params);

inline constexpr Note kSeedNote{
    "A seed of 0 or more repeats its draw in every prediction and on every machine; without one each prediction draws "
    "anew. The stream is splitmix64.",
    "coremltools' definition names no generator, so values differ from Core ML's; tests/ops/random_test.cpp tests the "
    "distributions"};

/// Random numbers of one draw: a stream of its own for a seed >= 0, else the model's.
class Draw {
 public:
  /// Errors: invalid_argument when the seed is not an integer, internal when an unseeded draw has no source.
  static Result<Draw> start(const OpCall& call);
  Draw(const Draw&) = delete;
  Draw(Draw&& o) noexcept : own_(o.own_), shared_(o.shared_) {}

  uint64_t bits() { return shared_ != nullptr ? shared_->next() : own_.next(); }
  /// In [0, 1), a multiple of 2^-digits; 1 <= digits <= 53.
  double uniform(int digits = 53) {
    return static_cast<double>(bits() >> (64 - digits)) / static_cast<double>(uint64_t{1} << digits);
  }

 private:
  Draw() = default;
  RandomSource own_;
  RandomSource* shared_ = nullptr;
};

}  // namespace moka::ops
