// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "ir/program.h"
#include "ir/tensor.h"

/// Elementwise functions that a kernel may apply to its result before storing it (ir::Op::epilogue). The table of all
/// functions is epilogues.inc.
namespace moka::kernel {

/// Smallest and greatest value of a clamped result.
using Limits = std::array<float, 2>;

/// Whether `op` names a function in the table.
bool is_epilogue(std::string_view op);
/// Whether the function only selects among its input, its absolute value and its limits. Such a function rounds
/// nothing.
bool is_exact(const ir::Epilogue& e);
/// The limits of a function that only clamps its input; nullopt for other functions.
std::optional<Limits> limits_of(const ir::Epilogue& e);

/// Applies one epilogue to `n` floats. Precondition: is_epilogue(e.op).
void apply_epilogue(const ir::Epilogue& e, float* data, int64_t n);

/// Applies all epilogues, in order, to every element of a dense tensor of any float dtype. Computes fp64 in double and
/// other types in float, and rounds once, after the last function. Never allocates.
void apply_epilogues(std::span<const ir::Epilogue> epilogues, const ir::TensorView& in_place);

}  // namespace moka::kernel
