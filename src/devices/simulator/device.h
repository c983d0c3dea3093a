#pragma once

#include "kernel/kernel.h"

namespace moka::devices::simulator {

/// A device with a memory of its own, made of reference kernels: it shows whether plans keep to docs/compute-units.md.
/// Its buffers start as NaN and have no address that the host knows. Every queue works in a thread of its own after
/// random delays, so submissions of several queues end in any order. Some values lie in blocks of channels. The device
/// is used only when it is named.
const kernel::Device& device();

}  // namespace moka::devices::simulator
