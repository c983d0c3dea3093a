#pragma once

#include "kernel/kernel.h"

namespace moka::devices::null {

/// A device to copy: complete, and of no use. It refuses every operation but `identity`.
const kernel::Device& device();

}  // namespace moka::devices::null
