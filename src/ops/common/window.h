// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/op_def.h"

/// The arithmetic of sliding windows, shared by type inference and by kernels of convolutions and pools.
namespace moka::ops {

/// A window moving over the spatial dimensions (all after batch and channels), one entry per spatial dimension. Unknown
/// sizes are negative, as in ir::Shape; with concrete types everything is known.
struct Window {
  int rank = 0;        ///< spatial dimensions, 1 to 3
  ir::Ints in;         ///< input sizes
  ir::Ints out;        ///< output sizes, at least 1
  ir::Ints kernel;     ///< at least 1
  ir::Ints strides;    ///< at least 1
  ir::Ints dilations;  ///< at least 1; 1 for pools
  /// Elements added before and after the input (conv, pools) or cropped from the full result (conv_transpose). pads_end
  /// makes the sizes agree exactly. If it is negative, the end of the input is not read, or the result of a transposed
  /// convolution is extended by the bias alone. In ceil mode it may exceed the model's padding.
  ir::Ints pads_begin, pads_end;
  int64_t groups = 1;

  /// (kernel - 1) * dilation + 1.
  int64_t extent(int i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  /// Product of the kernel sizes.
  int64_t taps() const;
  /// Product of the input or output sizes.
  int64_t in_count() const;
  int64_t out_count() const;
  /// The same window with rank 3. Dimensions of size 1 are added in front.
  Window as_3d() const { return as(3); }
  /// The same window with rank `dimensions`, which is not below its own rank.
  Window as(int dimensions) const;
};

/// The window of an operation with the parameters of `conv`: x, weight, bias, strides, pad_type, pad, dilations,
/// groups. Checks all shapes and constants. Sizes follow MIL's definition: pad_type `same` puts an odd element of
/// padding at the end, `same_lower` at the beginning.
Result<Window> conv_window(const ir::OpCall& call);

/// The window of `conv_transpose`: x, weight, bias, pad, output_shape, pad_type, strides, dilations, groups.
/// output_shape only moves the end, because pads_begin follows from pad_type.
Result<Window> conv_transpose_window(const ir::OpCall& call);

/// The window of a pool: x, kernel_sizes, strides, pad_type, pad, ceil_mode.
Result<Window> pool_window(const ir::OpCall& call, int max_rank = 3);

/// The window of `moka_conv_weights_gradient`, whose types are concrete. `out` are the sizes of dy, and pads_end is not
/// set.
Result<Window> weights_gradient_window(const ir::OpCall& call);

/// The outputs [first, last) of a dimension for which a tap reads inside the input: output o reads element o * stride +
/// base.
struct TapReach {
  int64_t first, last, base;
};
TapReach tap_reach(const Window& w, int i, int64_t tap);

}  // namespace moka::ops
