// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/gpu_device.h"

namespace moka::devices::vulkan {

/// The best card with a driver of Vulkan 1.1 or newer; without one it has no kernels. Device::others() has the rest.
const gpu::GpuDevice& device();
/// What the folder gives to the list of devices.
std::vector<const kernel::Device*> devices();

}  // namespace moka::devices::vulkan
