// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/outer.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Outer& outer() {
  static const Outer& best = MOKA_FOR_ISA(outer)();
  return best;
}

}  // namespace moka::devices::cpu::vector
