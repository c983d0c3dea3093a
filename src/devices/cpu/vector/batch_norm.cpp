// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/batch_norm.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const BatchNorm& batch_norm() {
  static const BatchNorm& best = MOKA_FOR_ISA(batch_norm)();
  return best;
}

}  // namespace moka::devices::cpu::vector
