#pragma once

#include "import/description.h"
#include "ir/program.h"

namespace moka::import {

/// Records which values the inputs of `function` may have, as far as the operations that read them say so: categories
/// of encoders and mappings, ranges of indices into tables.
void find_hints(const ir::Function& function, FunctionDescription& description);

}  // namespace moka::import
