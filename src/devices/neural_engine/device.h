// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/device.h"

namespace moka::devices::neural_engine {

/// A preview of Apple's Neural Engine. neural_engine.rules and the user's rules decide which operations it would run.
/// The host's kernels compute these operations, with all inputs and results rounded to float16 and sums in float32. The
/// preview is used when cpuAndNeuralEngine or a pin asks for it.
const kernel::Device& device();
/// What the folder gives to the list of devices.
std::vector<const kernel::Device*> devices();

}  // namespace moka::devices::neural_engine
