#pragma once

#include "kernel/kernel.h"

namespace moka::devices::cpu {

/// Vector kernels and oneDNN for fp32. The environment variable MOKA_MAX_CPU_ISA (base, avx2, avx512) limits the
/// instructions that are used, oneDNN's too; it is read once. oneDNN's own ONEDNN_MAX_CPU_ISA limits both as well.
const kernel::Device& device();

}  // namespace moka::devices::cpu
