#pragma once

#include "kernel/kernel.h"

namespace moka::devices::reference {

/// Runs every operation with its reference function. It is the fallback that refuses nothing, and what other devices
/// are tested against.
const kernel::Device& device();

}  // namespace moka::devices::reference
