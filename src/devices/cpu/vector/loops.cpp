// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/loops.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Loops& loops() {
  static const Loops& best = MOKA_FOR_ISA(loops)();
  return best;
}

}  // namespace moka::devices::cpu::vector
