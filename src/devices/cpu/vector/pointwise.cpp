// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/pointwise.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Pointwise& pointwise() {
  static const Pointwise& best = MOKA_FOR_ISA(pointwise)();
  return best;
}

}  // namespace moka::devices::cpu::vector
