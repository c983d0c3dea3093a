#include "devices/cpu/vector/winograd.h"

#include "devices/cpu/isa.h"

namespace moka::devices::cpu::vector {

const Winograd& winograd() {
  static const Winograd& best = []() -> const Winograd& {
#if defined(__x86_64__)
    if (isa() == Isa::avx512) return winograd_avx512();
    if (isa() == Isa::avx2) return winograd_avx2();
#endif
    return winograd_base();
  }();
  return best;
}

}  // namespace moka::devices::cpu::vector
