// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace moka::training {

/// Computes values again for the backward pass instead of keeping them: the results of operations before `loss` that
/// are not costly (ir::Trait). They are made from values that stay, and are the same to the bit.
Status recompute(ir::Function& function, const ir::Op& loss, const ir::OpTable& table);

}  // namespace moka::training
