// SPDX-License-Identifier: Apache-2.0
#include "ops/common/binary.h"

namespace moka::ops {

OpDef define_less_equal() {
  return comparison("less_equal", "x <= y with broadcasting.", [](auto a, auto b) { return a <= b; }).build();
}

}  // namespace moka::ops
