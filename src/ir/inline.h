#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace moka::ir {

/// Appends copies of a function's operations, with `inputs` in place of its inputs, and returns its outputs. Infers
/// types again and shares constants. Adds `prefix` to names. Errors: those of Builder.
Result<std::vector<Value*>> inline_function(Builder& builder, const Function& function, std::span<Value* const> inputs,
                                            std::string_view prefix);

}  // namespace moka::ir
