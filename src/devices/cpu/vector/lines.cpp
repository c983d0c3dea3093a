// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/lines.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Lines& lines() {
  static const Lines& best = MOKA_FOR_ISA(lines)();
  return best;
}

}  // namespace moka::devices::cpu::vector
