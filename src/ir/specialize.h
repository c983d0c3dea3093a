// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ir/program.h"

namespace moka::ir {

/// Gives the inputs of a function's body concrete types and infers the types of all values again. Shapes and what
/// follows from them alone become constants. A branch that is always taken replaces its operation, and so do the
/// iterations of a loop whose number follows from constants. Blocks of other loops keep their types. Errors: those of
/// inference.
Status specialize(Function& function, std::span<const Type> inputs, const OpTable& table);

}  // namespace moka::ir
