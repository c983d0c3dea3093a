// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/common/window.h"

namespace moka::ops {

/// Convolves x [batch, channels, spatial...] with `weight`, which holds a row-major kernel for each output channel, and
/// adds `bias` if not null. The window has rank 3. Sums are in double.
void convolve(const ir::TensorView& x, const ir::TensorView& weight, const ir::TensorView* bias, const Window& w,
              const ir::TensorView& out);

/// Declares the parameters of a window: strides, pad_type, pad, dilations, groups.
ir::OpBuilder& add_window_params(ir::OpBuilder& b);

}  // namespace moka::ops
