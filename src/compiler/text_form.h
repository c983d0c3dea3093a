// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/description.h"
#include "ir/program.h"

namespace moka::compiler {

/// Adds to a program what its compiled text contains besides the operations: the dialect, the compiler's name, and for
/// each function with flexible inputs their default sizes, and ranges or enumerated shapes (attribute
/// FlexibleShapeInformation).
void prepare_text(ir::Program& program, const import::ModelDescription& description);

}  // namespace moka::compiler
