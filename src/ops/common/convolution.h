#pragma once

#include "ops/common/window.h"

namespace moka::ops {

/// out = weight * x + bias (null: none) over windows of rank 3, in double. x is [batch, channels, spatial...]; weight
/// holds a kernel for each output channel, row-major.
void convolve(const ir::TensorView& x, const ir::TensorView& weight, const ir::TensorView* bias, const Window& w,
              const ir::TensorView& out);

}  // namespace moka::ops
