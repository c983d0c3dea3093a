// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "ir/program.h"

namespace moka::training {

/// What makes the next value of a weight: operations of the function's body, one behind the other.
struct WeightStep {
  ir::Value* weight = nullptr;
  std::vector<ir::Op*> ops;
};

/// Moves each step to where its gradient is there and nothing reads the weight any more, so that gradients do not live
/// until the end of the program.
void place_steps(const ir::Function& function, std::span<const WeightStep> steps);

}  // namespace moka::training
