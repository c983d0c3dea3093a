// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"

namespace moka::training {

/// What a batch norm remembers: weights of the function, and the value that takes their place after a step.
struct RunningStatistic {
  std::string parameter;
  ir::Value* next = nullptr;
};

/// The names of the weights that are the means and variances of the function's batch norms. Those that others read as
/// well become weights of their own, "operation_mean" and "operation_variance". Error unsupported: a batch norm is in a
/// block of another operation, or its statistics are compressed and shared.
Result<std::vector<std::string>> own_statistics(ir::Function& function);

/// Normalizes by the mean and the variance of the mini-batch, as PyTorch does in training. The running ones, which are
/// parameters, move towards them by the share `momentum`; that variance is unbiased. Types are concrete.
/// Errors: unsupported (a channel has fewer than two values), invalid_argument (the momentum).
Result<std::vector<RunningStatistic>> use_batch_statistics(ir::Function& function, double momentum,
                                                           const ir::OpTable& table);

}  // namespace moka::training
