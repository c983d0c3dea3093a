// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/simulator/faults.h"
#include "kernel/device.h"

namespace moka::devices::simulator {

/// A simulated device with its own memory, which runs the reference kernels. It tests whether plans follow
/// docs/device-plans.md. Its buffers start as NaN, and the host cannot read their addresses. Every queue works in its
/// own thread after random delays, so submissions of several queues finish in any order. Some values are stored in
/// blocks of channels. Moka uses the device only if a configuration names it.
const kernel::Device& device();
/// Two devices, `simulator` and `simulator1`, so that plans for several can be tested.
std::vector<const kernel::Device*> devices();

}  // namespace moka::devices::simulator
