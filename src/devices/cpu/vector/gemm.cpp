#include "devices/cpu/vector/gemm.h"

#include "devices/cpu/isa.h"

namespace moka::devices::cpu::vector {

namespace {

const Gemm& best(bool wide) {
#if defined(__x86_64__)
  if (isa() == Isa::avx512) return gemm_avx512(wide);
  if (isa() == Isa::avx2) return gemm_avx2(wide);
#endif
  return gemm_base(wide);
}

}  // namespace

const Gemm& gemm() {
  static const Gemm& g = best(false);
  return g;
}

const Gemm& gemm_for(int64_t columns) {
  static const Gemm& wide = best(true);
  // A single vector behind panels of three is slow unless they are many.
  const int64_t vectors = (columns + wide.lanes - 1) / wide.lanes;
  return vectors % 3 == 1 && vectors < 16 ? gemm() : wide;
}

int64_t packed_count(const Gemm& g, int64_t depth, int64_t columns) {
  return (columns + g.lanes - 1) / g.lanes * g.lanes * depth;
}

}  // namespace moka::devices::cpu::vector
