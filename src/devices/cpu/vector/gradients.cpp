// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/gradients.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Gradients& gradients() {
  static const Gradients& best = MOKA_FOR_ISA(gradients)();
  return best;
}

}  // namespace moka::devices::cpu::vector
