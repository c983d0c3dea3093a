#pragma once

#include <string_view>

#include "kernel/kernel.h"

namespace moka::kernel {

/// "cpu", "gpu", "neuralEngine".
std::string_view name_of(ComputeUnit unit);
/// Whether the device is a driver that computes on the CPU (Hardware::software).
bool is_software(const Device& device);
/// The name of the unit that computes what the device does: "cpu" for software.
std::string_view unit_name_of(const Device& device);

}  // namespace moka::kernel
