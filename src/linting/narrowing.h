// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "linting/bounds.h"

/// Operations that give an integer type numbers that it may not hold. Other integers wrap, floats saturate.
namespace moka::linting {

struct Narrowing {
  const ir::Op* op = nullptr;
  const ir::Value* from = nullptr;  ///< the operand that is converted; nullptr: `op` makes the numbers itself
  ir::DType to{};
  Interval given;                  ///< the numbers of `from`, or those that `op` makes
  const ir::Op* gather = nullptr;  ///< reads the results as indices; nullptr: none does
  int64_t rows = 0;                ///< of the axis that it reads

  /// Whether allowed inputs, or constants, certainly have such numbers.
  bool is_certain() const { return given.is_bounded() && given.grip != Grip::wide; }
  /// The input of the function that `from` is, moved; nullptr: the numbers are computed.
  const ir::Value* input() const;
  /// "it converts int32 to int16, which holds -32768 to 32767 alone".
  std::string reason() const;
  /// Where the numbers come from and what becomes of one that `to` does not hold: of `seen`, or of an example. "input
  /// 'ids' may be 0 to 59999; from 32768 on it wraps: 59999 becomes -5537, which 'rows' (gather) reads as row 54463".
  std::string evidence(std::optional<double> seen = {}) const;

 private:
  bool saturates() const;
  double example() const;
  std::string fate_of(double number) const;
  std::string source() const;
};

/// All of a function, in order. Left out are those whose numbers are in range, and the indices of gathers that read no
/// more rows than the type can count.
std::vector<Narrowing> narrowings(const ir::Block& body, const Bounds& bounds);

}  // namespace moka::linting
