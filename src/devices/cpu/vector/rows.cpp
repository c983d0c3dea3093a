#include "devices/cpu/vector/rows.h"

#include "devices/cpu/isa.h"

namespace moka::devices::cpu::vector {

const RowLoops& row_loops() {
  static const RowLoops& best = []() -> const RowLoops& {
#if defined(__x86_64__)
    if (isa() == Isa::avx512) return row_loops_avx512();
    if (isa() == Isa::avx2) return row_loops_avx2();
#endif
    return row_loops_base();
  }();
  return best;
}

}  // namespace moka::devices::cpu::vector
