// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/rows.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const RowLoops& row_loops() {
  static const RowLoops& best = MOKA_FOR_ISA(row_loops)();
  return best;
}

}  // namespace moka::devices::cpu::vector
