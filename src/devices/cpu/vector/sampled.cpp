// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/sampled.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Sampled& sampled() {
  static const Sampled& best = MOKA_FOR_ISA(sampled)();
  return best;
}

}  // namespace moka::devices::cpu::vector
