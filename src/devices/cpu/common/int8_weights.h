// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "devices/cpu/common/common.h"
#include "devices/cpu/vector/int8.h"

namespace moka::devices::cpu {

/// Where the weights of a product are in their tensor: column o, tap t and row k is at o * column + t * tap + k * row.
struct WeightSteps {
  int64_t columns, taps, depth;
  int64_t column, tap, row;
};

/// Constant 8-bit weights for quantized activations, packed as vector/int8.h reads them. Immutable once prepared.
class Int8Weights {
 public:
  /// The weights of input `weight`, with columns along `axis`, for input `x`. A refusal if they are not integers with
  /// one scale per column, or if sums might overflow 32 bits.
  static std::shared_ptr<Int8Weights> of(const MatchCall& m, int x, int weight, int axis, const WeightSteps& steps,
                                         std::string& refusal);

  Status prepare(kernel::PrepareContext& context);

  int64_t quads() const { return (steps_.depth + 3) / 4; }
  int64_t vectors() const { return (steps_.columns + bytes_.lanes - 1) / bytes_.lanes; }
  int64_t panels() const { return (steps_.columns + bytes_.panel - 1) / bytes_.panel; }
  const int8_t* panel(int64_t p) const {
    return reinterpret_cast<const int8_t*>(weights_.get()) + p * bytes_.panel * steps_.taps * quads() * 4;
  }
  double bytes() const { return static_cast<double>(vectors() * bytes_.lanes * steps_.taps * quads() * 4); }
  const int32_t* first() const { return reinterpret_cast<const int32_t*>(sums_.get()); }
  const float* scale() const { return reinterpret_cast<const float*>(first() + vectors() * bytes_.lanes); }
  const kernel::QuantizedActivation& input() const { return input_; }
  /// "int8 by int8".
  std::string describe() const;

 private:
  explicit Int8Weights(const vector::Int8Gemm& b) : bytes_(b) {}
  int value(int64_t at) const;
  void write_weights(int8_t* to) const;
  void write_sums(int32_t* first, float* scale) const;

  const vector::Int8Gemm& bytes_;
  kernel::StoredConstant stored_;
  kernel::QuantizedActivation input_;
  WeightSteps steps_{};
  int arg_ = 0, axis_ = 0;
  std::vector<uint8_t> unpacked_;  ///< weights of less than 8 bits, only during prepare()
  std::vector<int> offsets_;       ///< one, or one per column
  std::shared_ptr<const std::byte> weights_, sums_;
};

}  // namespace moka::devices::cpu
