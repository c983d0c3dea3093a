// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/dense.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Dense& dense() {
  static const Dense& best = MOKA_FOR_ISA(dense)();
  return best;
}

}  // namespace moka::devices::cpu::vector
