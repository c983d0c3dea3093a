// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/common/common.h"

namespace moka::ops {

/// Begins an operation that gives the gradients of x, gamma and beta of a batch norm, from x, the gradient dy of its
/// result, mean, variance, gamma and epsilon.
OpBuilder batch_norm_gradient_builder(std::string name, std::string doc);

}  // namespace moka::ops
