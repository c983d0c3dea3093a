#include "devices/cpu/vector/loops.h"

#include "devices/cpu/isa.h"

namespace moka::devices::cpu::vector {

const Loops& loops() {
  static const Loops& best = []() -> const Loops& {
#if defined(__x86_64__)
    if (isa() == Isa::avx512) return loops_avx512();
    if (isa() == Isa::avx2) return loops_avx2();
#endif
    return loops_base();
  }();
  return best;
}

}  // namespace moka::devices::cpu::vector
