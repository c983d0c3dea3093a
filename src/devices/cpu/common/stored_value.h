// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/stored.h"

namespace moka::devices::cpu {

/// Elements [first, first + n) as floats. Never allocates.
void stored_values(const kernel::StoredConstant& s, int64_t first, int64_t n, float* to);

}  // namespace moka::devices::cpu
