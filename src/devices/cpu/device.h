// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/device.h"

namespace moka::devices::cpu {

/// The CPU, with vector kernels and oneDNN for fp32. The environment variables MOKA_MAX_CPU_ISA (base, avx2, avx512)
/// and oneDNN's own ONEDNN_MAX_CPU_ISA limit the instruction sets of both. They are read once.
const kernel::Device& device();
/// What the folder gives to the list of devices.
std::vector<const kernel::Device*> devices();

}  // namespace moka::devices::cpu
