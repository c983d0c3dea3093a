// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/int8.h"

#include "devices/cpu/isa.h"

namespace moka::devices::cpu::vector {

const Int8Gemm* int8_gemm() {
#if defined(__x86_64__)
  if (!has_vnni()) return nullptr;
  return isa() == Isa::avx512 ? &int8_gemm_avx512vnni() : &int8_gemm_avxvnni();
#else
  return nullptr;
#endif
}

}  // namespace moka::devices::cpu::vector
