// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace moka {

/// The instruction sets that code is compiled for.
enum class InstructionSet : uint8_t { base, avx2, avx512 };

/// The best one that this processor has and MOKA_MAX_CPU_ISA allows.
InstructionSet instruction_set();
/// Whether the processor has a better one.
bool is_instruction_set_limited();

}  // namespace moka
