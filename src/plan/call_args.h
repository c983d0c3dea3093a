// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "plan/resolve.h"

namespace moka::plan {

/// The inputs of an operation as inference and kernels see them.
struct CallArgs {
  std::vector<ir::Arg> args;
  std::vector<ir::TensorView> views;
  std::unique_ptr<bool[]> constant;
  bool all_known = true, all_shapes_known = true, all_constant = true;

  CallArgs(const Resolved& resolved, std::span<const int> in);
  CallArgs(CallArgs&&) = default;
};

}  // namespace moka::plan
