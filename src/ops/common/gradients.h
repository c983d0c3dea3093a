// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "ir/gradient.h"
#include "ops/common/window.h"

/// Parts of gradients that several operations share.
namespace moka::ops {

/// 0, 1, ..., rank - 1.
ir::Ints all_axes(int rank);

/// An input with one number for each channel, in a shape that broadcasts against x, whose channels are axis 1.
ir::Term channel_wise(ir::Gradient& g, std::string_view param);
/// The sum over all axes but 1.
ir::Term sum_but_channels(ir::Gradient& g, ir::Term x);

/// A value of the shape of a reduction's result, in the shape of x with size 1 on the reduced axes.
ir::Term reduced(ir::Gradient& g, ir::Term of_result);
/// The gradient of a reduction to the largest or smallest element. Equal ones get the same share.
void extremum_gradient(ir::Gradient& g);
/// The gradient of `maximum` and `minimum`, which goes to the one that `comparison` with the other one picks. Equal
/// ones get half each.
void pick_gradient(ir::Gradient& g, std::string_view comparison);

/// For each element the product of the others of its group, also where some are 0. `combine` gives each element the sum
/// of its group, or the product.
ir::Term product_of_others(ir::Term x, const std::function<ir::Term(ir::Term x, bool is_product)>& combine);

/// The gradient of a normalization over `axes` with gamma and beta of the shape of `affine_axes`.
void normalization_gradient(ir::Gradient& g, const ir::Ints& axes, const ir::Ints& affine_axes);

/// The gradient of the weights of a convolution from `wide` to `narrow`: for a transposed one, from its result to its
/// input.
ir::Term conv_weights_gradient(ir::Gradient& g, const Window& w, ir::Term wide, ir::Term narrow);

/// The gradient of a pool, by an operation with its window.
void pool_gradient(ir::Gradient& g, std::string_view op);

/// The gradient of an operation that weighs rows and columns, the last two axes, each by numbers of their own: two
/// products with constant matrices, which the operation itself computes.
void resize_gradient(ir::Gradient& g);

/// The gradient of a function whose result `y` is its argument within limits: dy where low < y < high, else 0.
ir::Term clamp_gradient(ir::Gradient& g, ir::Term y, double low, double high);

/// Indices as gathering reads them: from the front, within [0, size).
ir::Term nearest_index(ir::Gradient& g, std::string_view param, int64_t size);
/// The same for index vectors, whose components have these sizes.
ir::Term nearest_indices(ir::Gradient& g, std::string_view param, const ir::Ints& sizes);
/// 0, 1, 2, ... of int32 in this shape.
ir::Term counted(ir::Gradient& g, const ir::Shape& shape);
/// int32 numbers that are known.
ir::Tensor int32s(ir::Gradient& g, const ir::Shape& shape, const std::function<int64_t(int64_t)>& at);

}  // namespace moka::ops
