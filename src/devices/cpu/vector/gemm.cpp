#include "devices/cpu/vector/gemm.h"

#include "devices/cpu/isa.h"

namespace moka::devices::cpu::vector {

const Gemm& gemm() {
  static const Gemm& best = []() -> const Gemm& {
#if defined(__x86_64__)
    if (isa() == Isa::avx512) return gemm_avx512();
    if (isa() == Isa::avx2) return gemm_avx2();
#endif
    return gemm_base();
  }();
  return best;
}

int64_t packed_count(const Gemm& g, int64_t depth, int64_t columns) {
  return (columns + g.lanes - 1) / g.lanes * g.lanes * depth;
}

}  // namespace moka::devices::cpu::vector
