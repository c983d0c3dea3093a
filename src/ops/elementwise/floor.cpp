// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_floor() {
  return unary("floor", "Rounds down to an integer, elementwise.", [](auto x) { return std::floor(x); })
      .note("-0 stays -0.", "coremltools' value inference, numpy.floor")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
