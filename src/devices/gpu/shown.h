// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/recorder.h"

namespace moka::devices::gpu {

/// Commands as people read them.
std::vector<kernel::ShownCommand> shown(const GpuDevice& device, std::span<const Command> commands);

}  // namespace moka::devices::gpu
