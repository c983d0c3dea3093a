#pragma once

#include "devices/cpu/kernels/common.h"

namespace moka::devices::cpu {

std::span<const KernelDef> conv_kernels();  ///< and pools

}  // namespace moka::devices::cpu
