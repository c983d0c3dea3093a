// SPDX-License-Identifier: Apache-2.0
#include "ops/common/groups.h"

namespace moka::ops {

Groups::Groups(const Shape& shape, const Ints& axes) {
  unsigned chosen = 0;
  for (int64_t a : axes) chosen |= 1u << a;
  const auto strides = shape.strides();
  Side* previous = nullptr;
  for (int d = 0; d < shape.rank(); d++) {
    if (shape[d] == 1) continue;
    Side& side = (chosen >> d) & 1 ? members_ : groups_;
    side.count *= shape[d];
    if (&side == previous) {
      const auto last = static_cast<size_t>(side.rank - 1);
      side.size[last] *= shape[d];
      side.stride[last] = strides[static_cast<size_t>(d)];
    } else {
      side.size[static_cast<size_t>(side.rank)] = shape[d];
      side.stride[static_cast<size_t>(side.rank++)] = strides[static_cast<size_t>(d)];
    }
    previous = &side;
  }
}

}  // namespace moka::ops
