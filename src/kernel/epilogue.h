#pragma once

#include <span>
#include <string_view>

#include "ir/program.h"
#include "ir/tensor.h"

/// The elementwise functions that a kernel may apply to its result before storing it.
namespace moka::kernel {

/// Whether `op` names such a function: relu, relu6, clip (alpha, beta), sigmoid, tanh, silu, leaky_relu (alpha),
/// elu (alpha), gelu, gelu_tanh, softplus, linear_activation (alpha, beta), abs, sqrt, square, exp,
/// sigmoid_hard (alpha, beta), moka_hard_swish.
bool is_epilogue(std::string_view op);

/// Applies one epilogue to `n` floats. Precondition: is_epilogue(e.op).
void apply_epilogue(const ir::Epilogue& e, float* data, int64_t n);

/// Applies all, in order, to every element of a dense float tensor of any float dtype; other than fp64, values are
/// computed in float, and rounded once after the last. Never allocates.
void apply_epilogues(std::span<const ir::Epilogue> epilogues, const ir::TensorView& in_place);

}  // namespace moka::kernel
