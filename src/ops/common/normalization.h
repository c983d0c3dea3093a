// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/op_def.h"

namespace moka::ops {

/// Adds the parts that every normalization has: the optional parameters gamma and beta, epsilon (1e-5), and its
/// functions.
ir::OpBuilder& finish_norm(ir::OpBuilder& b, ir::InferFn infer, ir::ReferenceFn reference);

}  // namespace moka::ops
