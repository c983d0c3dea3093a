// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/device.h"

namespace moka::devices::reference {

/// Runs every operation with its reference function. It is the fallback that refuses nothing, and the reference for
/// tests of other devices.
const kernel::Device& device();
/// What the folder gives to the list of devices.
std::vector<const kernel::Device*> devices();

}  // namespace moka::devices::reference
