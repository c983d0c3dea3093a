// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/widen.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Widen& widen() {
  static const Widen& best = MOKA_FOR_ISA(widen)();
  return best;
}

}  // namespace moka::devices::cpu::vector
