#pragma once

#include "kernel/kernel.h"

namespace moka::devices::reference {

/// Runs every operation with its reference function. It is the fallback that refuses nothing, and the reference for
/// tests of other devices.
const kernel::Device& device();

}  // namespace moka::devices::reference
