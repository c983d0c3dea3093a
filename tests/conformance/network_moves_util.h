// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "conformance/network_values_util.h"

namespace moka::conformance {

/// The parts of a random network that move elements: shapes, slices, windows. Each appends operations on a value.
class NetworkMoves : public NetworkValues {
 public:
  explicit NetworkMoves(Choices& c) : NetworkValues(c) {}

  void keep(ir::Value* v);
  ir::Value* any();
  /// A value of the same sizes; possibly `x` itself.
  ir::Value* like(ir::Value* x);

  void reshape(ir::Value* x);
  /// A shape that the program computes: the first size, and the rest in one.
  void measured(ir::Value* x);
  void squeeze(ir::Value* x);
  void pad(ir::Value* x);
  void pool(ir::Value* x);
  void concat(ir::Value* x);
  void stack(ir::Value* x);
  void slice(ir::Value* x);
  void gather(ir::Value* x);
  /// `x` with a slice of it replaced by one of `from`, at the same place or elsewhere. Both have the same sizes.
  ir::Value* replaced(ir::Value* x, ir::Value* from);
  void replace(ir::Value* x);
  void tile(ir::Value* x);
  /// Moves blocks between channels and space, and channels between groups.
  void shuffle(ir::Value* x);
  void resize(ir::Value* x);

 protected:
  std::vector<ir::Value*> values_;  ///< that parts may read
};

}  // namespace moka::conformance
