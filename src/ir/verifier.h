// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace moka::ir {

/// Checks the invariants of every program, imported or built:
///  - every operation has a definition, every required parameter a value, and all values a type;
///  - every value is defined before its use, in the same block or one around it;
///  - names of values are unique in their function, names of functions in the program;
///  - `cond` and `while_loop` have blocks with matching inputs and outputs, other operations have none;
///  - users and returned_by of every value list exactly its readers.
/// Error internal, with the function and the operation.
Status verify(const Program& program);

}  // namespace moka::ir
