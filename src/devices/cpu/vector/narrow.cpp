// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/narrow.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Narrow& narrow() {
  static const Narrow& best = MOKA_FOR_ISA(narrow)();
  return best;
}

}  // namespace moka::devices::cpu::vector
