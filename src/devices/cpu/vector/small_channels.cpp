// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/small_channels.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const SmallChannels& small_channels() {
  static const SmallChannels& best = MOKA_FOR_ISA(small_channels)();
  return best;
}

}  // namespace moka::devices::cpu::vector
