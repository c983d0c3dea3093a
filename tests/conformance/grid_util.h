// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>

#include "conformance/case_util.h"
#include "ir/op_def.h"

/// Random programs of one operation, generated only from its definition, and the properties that they must have.
namespace moka::conformance {

/// The source of a generator's decisions.
class Choices {
 public:
  virtual ~Choices() = default;
  /// 0 <= result < n. Precondition: n > 0.
  virtual uint32_t below(uint32_t n) = 0;
  bool one_in(uint32_t n) { return below(n) == 0; }
  /// low <= result <= high.
  int64_t from_to(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<uint32_t>(high - low + 1)));
  }
  template <class List>
  auto pick(const List& list) {
    return list[below(static_cast<uint32_t>(list.size()))];
  }
};

class SeededChoices final : public Choices {
 public:
  explicit SeededChoices(std::string_view seed);
  uint32_t below(uint32_t n) override { return static_cast<uint32_t>(random_() % n); }

 private:
  std::mt19937_64 random_;
};

/// Returns zeros when the bytes are exhausted.
class ByteChoices final : public Choices {
 public:
  explicit ByteChoices(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint32_t below(uint32_t n) override;

 private:
  std::span<const uint8_t> bytes_;
};

/// How many random programs a test tries. The environment variables MOKA_RANDOM_PROGRAMS and MOKA_RANDOM_SEED, which
/// `make test-random` sets, ask for others and for more than the usual number.
struct RandomPrograms {
  explicit RandomPrograms(int usual);
  std::string seed;  ///< begins the seed of each program
  int count;
  static constexpr int kMostWrong = 3;  ///< differences, then the test ends
  bool more;                            ///< all of them, instead of ending once there are enough
};

/// The value of one parameter. The values of a tuple are adjacent.
struct Argument {
  std::string param;
  ir::Constant value;
  bool constant;  ///< false: an input of the program
};

/// Consistent arguments, if independent draws rarely suit the operation; otherwise empty.
std::vector<Argument> recipe(const ir::OpVersion& version, Choices& choices);

/// A program with one operation and its inputs, without outputs. Changes a refused draw where the message points, up to
/// `attempts` times. Error: the last refusal.
Result<Case> random_case(const ir::OpVersion& version, Choices& choices, int attempts);

/// How far each element of `expected`, the first column's results, moves when the last bits of the case's float32
/// inputs change. Sums that cancel differ by a similar amount when they are added in another order.
Result<std::vector<std::vector<double>>> movements(const Case& c, const std::vector<ir::Tensor>& expected);

/// Runs the case in every column. Returns an empty string when all columns agree with the first (bit by bit for exact
/// columns, otherwise within the operation's tolerance) or when all fail. Otherwise it names the column and the
/// difference. `failed`: whether the first column failed.
std::string disagreement(const ir::OpVersion& version, const Case& c, bool& failed);

}  // namespace moka::conformance
