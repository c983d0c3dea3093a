// SPDX-License-Identifier: Apache-2.0
#include "ops/common/binary.h"

namespace moka::ops {

OpDef define_logical_xor() {
  return comparison(
             "logical_xor", "x or y but not both, with broadcasting.",
             [](auto a, auto b) { return (a != 0) != (b != 0); }, Trait::commutative, kBool)
      .build();
}

}  // namespace moka::ops
