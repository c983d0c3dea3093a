#pragma once

#include "kernel/kernel.h"

namespace moka::devices::null {

/// A complete device to copy when adding one. It refuses every operation but `identity`.
const kernel::Device& device();

}  // namespace moka::devices::null
