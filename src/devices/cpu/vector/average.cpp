// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/average.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Average& average() {
  static const Average& best = MOKA_FOR_ISA(average)();
  return best;
}

}  // namespace moka::devices::cpu::vector
