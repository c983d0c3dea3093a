// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/cpu/isa.h"

/// name_base, name_avx2 or name_avx512: the best variant that this processor supports.
#if defined(__x86_64__)
#define MOKA_FOR_ISA(name) (isa() == Isa::avx512 ? name##_avx512 : isa() == Isa::avx2 ? name##_avx2 : name##_base)
#else
#define MOKA_FOR_ISA(name) name##_base
#endif
