// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace moka::ir {

/// Appends copies of a function's operations, with `inputs` in place of its inputs, and returns its outputs. Infers
/// types again and shares constants. Adds `prefix` to names. Errors: those of Builder.
Result<std::vector<Value*>> inline_function(Builder& builder, const Function& function, std::span<Value* const> inputs,
                                            std::string_view prefix);

/// What an operation that was copied is replaced by: its own outputs, or others.
using Replacement = std::function<Result<std::vector<Value*>>(Op& copied)>;
/// The same for a block inside a function. It reads what is around it as before.
Result<std::vector<Value*>> inline_block(Builder& builder, const Block& block, std::span<Value* const> inputs,
                                         std::string_view prefix, const Replacement& replace = nullptr);

/// A copy of a program that shares its tensors. Infers types again; unknown sizes of inputs become symbols. `each` gets
/// every copied constant and may change where it lies in a file of weights. Errors: those of Builder.
Result<Program> copy_program(const Program& program, const OpTable& table, const std::function<void(Constant&)>& each);

}  // namespace moka::ir
