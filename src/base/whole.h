// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace moka {

/// Whether int64 has the number, which is then whole.
inline bool is_int64(double x) {
  constexpr double limit = 0x1p63;
  return x >= -limit && x < limit && x == std::trunc(x);
}

}  // namespace moka
