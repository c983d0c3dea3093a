#pragma once

#include <memory>
#include <string>

#include "devices/cpu/kernels/common.h"
#include "devices/cpu/vector/bytes.h"

namespace moka::devices::cpu {

/// How the weights of a product lie in their tensor: of column o, tap t and row k at o * column + t * tap + k * row.
struct WeightSteps {
  int64_t columns, taps, depth;
  int64_t column, tap, row;
};

/// Constant 8-bit weights packed as vector/bytes.h wants them, for inputs of known codes. Immutable once prepared.
class ByteWeights {
 public:
  /// Of input `weight`, whose columns run along `axis`, for an input `x`. A refusal when they are not integers with a
  /// scale for each column, or the sums might not fit.
  static std::shared_ptr<ByteWeights> of(const MatchCall& m, int x, int weight, int axis, const WeightSteps& steps,
                                         std::string& refusal);

  Status prepare(kernel::PrepareContext& context);

  int64_t quads() const { return (steps_.depth + 3) / 4; }
  int64_t vectors() const { return (steps_.columns + bytes_.lanes - 1) / bytes_.lanes; }
  int64_t panels() const { return (steps_.columns + bytes_.panel - 1) / bytes_.panel; }
  const int8_t* panel(int64_t p) const {
    return reinterpret_cast<const int8_t*>(codes_.get()) + p * bytes_.panel * steps_.taps * quads() * 4;
  }
  double bytes() const { return static_cast<double>(vectors() * bytes_.lanes * steps_.taps * quads() * 4); }
  const int32_t* first() const { return reinterpret_cast<const int32_t*>(sums_.get()); }
  const float* scale() const { return reinterpret_cast<const float*>(first() + vectors() * bytes_.lanes); }
  const kernel::Codes& input() const { return input_; }
  /// "int8 by int8".
  std::string describe() const;

 private:
  explicit ByteWeights(const vector::ByteProducts& b) : bytes_(b) {}
  int value(int64_t at) const;
  void write_codes(int8_t* to) const;
  void write_sums(int32_t* first, float* scale) const;

  const vector::ByteProducts& bytes_;
  kernel::StoredConstant stored_;
  kernel::Codes input_;
  WeightSteps steps_{};
  int arg_ = 0, axis_ = 0;
  std::vector<uint8_t> unpacked_;  // codes of less than 8 bits, while being prepared
  std::vector<int> offsets_;       // one, or one for each column
  std::shared_ptr<const std::byte> codes_, sums_;
};

}  // namespace moka::devices::cpu
