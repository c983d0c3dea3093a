#include "devices/cpu/vector/planes.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Planes& planes() {
  static const Planes& best = MOKA_FOR_ISA(planes)();
  return best;
}

}  // namespace moka::devices::cpu::vector
