// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/depthwise.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Depthwise& depthwise() {
  static const Depthwise& best = MOKA_FOR_ISA(depthwise)();
  return best;
}

}  // namespace moka::devices::cpu::vector
