#pragma once

#include "import/description.h"
#include "ir/program.h"

namespace moka::compiler {

/// Gives a program what its compiled text says beside the program: the dialect, who built it, and for each function
/// with flexible inputs their default sizes and ranges (attribute FlexibleShapeInformation).
void prepare_text(ir::Program& program, const import::ModelDescription& description);

}  // namespace moka::compiler
