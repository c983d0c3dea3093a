// SPDX-License-Identifier: Apache-2.0
#include "base/pixels.h"

#include <bit>

namespace moka {

void float_to_byte(const float* in, uint8_t* out, size_t n) {
  constexpr float kWhole = 8388608;  // at this magnitude neighbors are 1 apart, so an addition rounds
  for (size_t i = 0; i < n; i++) {
    const float least = in[i] > 0 ? in[i] : 0;
    out[i] = static_cast<uint8_t>(std::bit_cast<uint32_t>((least < 255 ? least : 255) + kWhole));
  }
}

}  // namespace moka
