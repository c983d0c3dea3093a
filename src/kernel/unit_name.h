#pragma once

#include <string_view>

#include "kernel/kernel.h"

namespace moka::kernel {

/// "cpu", "gpu", "neuralEngine".
std::string_view name_of(ComputeUnit unit);

}  // namespace moka::kernel
