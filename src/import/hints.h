// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/description.h"
#include "ir/program.h"

namespace moka::import {

/// Records which values the inputs of `function` may take, according to the operations that read them: the categories
/// of encoders and mappings, and the ranges of indices into tables.
void find_hints(const ir::Function& function, FunctionDescription& description);

}  // namespace moka::import
