// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/op_def.h"

namespace moka::ops {

/// Adds an optional input `addend` to an operation: a tensor of the result's type that is added to the result before
/// all epilogues. Only passes set it. A kernel can then add while the result is in registers.
ir::OpDef with_addend(ir::OpDef def);

}  // namespace moka::ops
