#pragma once

#include "ir/op_def.h"

namespace moka::ops {

/// The operation with one more input, `addend`: a tensor of the result's type that is added to it, ahead of all
/// epilogues. Only passes give it, so that a kernel can add while the result is in its registers.
ir::OpDef with_addend(ir::OpDef def);

}  // namespace moka::ops
