#pragma once

#include "kernel/kernel.h"

namespace moka::devices::reference {

/// Runs every operation with its reference kernel: the fallback that cannot refuse, and the yardstick.
const kernel::Device& device();

}  // namespace moka::devices::reference
