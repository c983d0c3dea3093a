#include "devices/cpu/vector/winograd.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Winograd& winograd() {
  static const Winograd& best = MOKA_FOR_ISA(winograd)();
  return best;
}

}  // namespace moka::devices::cpu::vector
