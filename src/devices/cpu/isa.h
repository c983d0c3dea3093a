#pragma once

#include <cstdint>
#include <string>

namespace moka::devices::cpu {

/// Instruction sets that make a difference to the kernels.
enum class Isa : uint8_t { base, avx2, avx512 };

/// The best of this processor that MOKA_MAX_CPU_ISA allows.
Isa isa();
/// Whether that set comes with sums of four products of bytes (VNNI).
bool has_byte_products();
/// Channels of one group in the blocked layout that convolutions ask for.
uint8_t channel_block();
/// Bytes of a core's second-level cache, or what most processors have where the system does not tell.
int64_t second_level_cache();
/// "Intel(R) Xeon(R) Processor, AVX-512 VNNI BF16".
std::string describe();
/// The same with what tells models of one name apart and oneDNN's version.
std::string identity();
/// Rough speed of one thread for cost estimates: fp32 operations and bytes moved in a second.
double flops_per_second();
double bytes_per_second();

}  // namespace moka::devices::cpu
