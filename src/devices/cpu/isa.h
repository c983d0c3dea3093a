// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace moka::devices::cpu {

/// The instruction sets that kernels are compiled for.
enum class Isa : uint8_t { base, avx2, avx512 };

/// The best instruction set that this processor has and MOKA_MAX_CPU_ISA allows.
Isa isa();
/// Whether the processor also has int8 dot products (VNNI).
bool has_vnni();
/// Channels per block in the layout of convolutions.
uint8_t channel_block();
/// Bytes of a core's L2 cache; a typical size if the system does not report it.
int64_t l2_cache_bytes();
/// "Intel(R) Xeon(R) Processor, AVX-512 VNNI BF16".
std::string describe();
/// describe() with oneDNN's version and the processor's signature, which distinguishes models with the same name.
std::string identity();
/// Everything on which packed weights depend: "AVX-512 VNNI with dot products, oneDNN 2.6.3 HASH for set 63".
std::string instruction_sets();
/// Rough speed of one thread for cost estimates: fp32 operations and bytes moved per second.
double flops_per_second();
double bytes_per_second();

}  // namespace moka::devices::cpu
