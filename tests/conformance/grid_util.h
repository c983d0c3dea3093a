#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>

#include "conformance/case_util.h"
#include "ir/op_def.h"

/// Random programs of one operation, made from its definition alone, and what must hold of them.
namespace moka::conformance {

/// Where a generator's decisions come from.
class Choices {
 public:
  virtual ~Choices() = default;
  /// 0 <= result < n. Precondition: n > 0.
  virtual uint32_t below(uint32_t n) = 0;
  bool one_in(uint32_t n) { return below(n) == 0; }
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

/// Zeros when the bytes are used up.
class ByteChoices final : public Choices {
 public:
  explicit ByteChoices(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint32_t below(uint32_t n) override;

 private:
  std::span<const uint8_t> bytes_;
};

/// What one parameter is given; those of a tuple follow one another.
struct Argument {
  std::string param;
  ir::Constant value;
  bool constant;  ///< else an input of the program
};

/// Arguments that fit together, where the operation is one that random draws seldom hit; else none.
std::vector<Argument> recipe(const ir::OpVersion& version, Choices& choices);

/// A program of that operation with its inputs; no outputs. A refused draw is changed where the message points, up to
/// `attempts` times. Error: the last refusal.
Result<Case> random_case(const ir::OpVersion& version, Choices& choices, int attempts);

/// Runs the case in every column. Empty when all agree with the first: bit by bit where the column says so, else within
/// the tolerance of the operation; or when all fail. Else the column and what differs. `failed`: the first one failed.
std::string disagreement(const ir::OpVersion& version, const Case& c, bool& failed);

}  // namespace moka::conformance
