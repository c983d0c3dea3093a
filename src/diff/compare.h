// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"
#include "moka/comparison.h"

namespace moka::diff {

/// Everything but the interface.
ModelComparison compare(const ir::Function& a, const ir::Function& b);

}  // namespace moka::diff
