// SPDX-License-Identifier: Apache-2.0
#include "ops/common/binary.h"

namespace moka::ops {

OpDef define_equal() {
  return comparison(
             "equal", "x == y with broadcasting.", [](auto a, auto b) { return a == b; }, Trait::commutative)
      .build();
}

}  // namespace moka::ops
