// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/doubles.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const DoubleLoops& double_loops() {
  static const DoubleLoops& best = MOKA_FOR_ISA(double_loops)();
  return best;
}

const DoubleLoops& exact_double_loops() {
  static const DoubleLoops& best = MOKA_FOR_ISA(exact_double_loops)();
  return best;
}

}  // namespace moka::devices::cpu::vector
