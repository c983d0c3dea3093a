// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace moka {

/// Rounds to the nearest integer in 0..255, ties to even; NaN becomes 0.
void float_to_byte(const float* in, uint8_t* out, size_t n);

}  // namespace moka
