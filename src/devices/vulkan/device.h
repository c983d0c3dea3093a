#pragma once

#include "devices/vulkan/queue.h"
#include "kernel/kernel.h"

namespace moka::devices::vulkan {

/// Any GPU with a driver of Vulkan 1.1 or newer; without one it has no kernels.
const kernel::Device& device();

}  // namespace moka::devices::vulkan
