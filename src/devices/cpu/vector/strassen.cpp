// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/strassen.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Strassen& strassen() {
  static const Strassen& best = MOKA_FOR_ISA(strassen)();
  return best;
}

}  // namespace moka::devices::cpu::vector
