// SPDX-License-Identifier: Apache-2.0
#include "ops/common/binary.h"

namespace moka::ops {

OpDef define_logical_and() {
  return comparison(
             "logical_and", "x and y with broadcasting.", [](auto a, auto b) { return a != 0 && b != 0; },
             Trait::commutative, kBool)
      .build();
}

}  // namespace moka::ops
