// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/recorder.h"
#include "devices/vulkan/memory.h"
#include "devices/vulkan/stamps.h"

namespace moka::devices::vulkan {

/// Records a barrier. Later commands see everything that earlier dispatches and copies wrote.
void wait_for_earlier(const Api& api, VkCommandBuffer commands);

/// Records commands into a command buffer, and their timestamps if there are `stamps`. Returns the new pool that owns
/// the descriptor sets. Errors: device_lost, also for a buffer of another card or process; those of compiling.
Result<VkDescriptorPool> record_commands(const Context& context, std::span<const gpu::Command> commands,
                                         VkCommandBuffer to, Stamps* stamps = nullptr);

}  // namespace moka::devices::vulkan
