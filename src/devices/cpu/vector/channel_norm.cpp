// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/channel_norm.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const ChannelNorm& channel_norm() {
  static const ChannelNorm& best = MOKA_FOR_ISA(channel_norm)();
  return best;
}

}  // namespace moka::devices::cpu::vector
