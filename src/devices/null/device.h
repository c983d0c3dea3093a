// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/device.h"

namespace moka::devices::null {

/// A complete device to copy when adding one. It refuses every operation but `identity`.
const kernel::Device& device();
/// What the folder gives to the list of devices.
std::vector<const kernel::Device*> devices();

}  // namespace moka::devices::null
