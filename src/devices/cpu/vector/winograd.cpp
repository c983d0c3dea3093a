// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/winograd.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Winograds& winograds() {
  static const Winograds& best = MOKA_FOR_ISA(winograds)();
  return best;
}

}  // namespace moka::devices::cpu::vector
