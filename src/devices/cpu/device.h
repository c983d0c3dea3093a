#pragma once

#include "kernel/kernel.h"

namespace moka::devices::cpu {

/// The CPU, with vector kernels and oneDNN for fp32. The environment variable MOKA_MAX_CPU_ISA (base, avx2, avx512)
/// limits the instruction sets that both use. It is read once. oneDNN's own ONEDNN_MAX_CPU_ISA limits both, too.
const kernel::Device& device();

}  // namespace moka::devices::cpu
