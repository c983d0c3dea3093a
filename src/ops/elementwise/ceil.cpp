// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_ceil() {
  return unary("ceil", "Rounds up to an integer, elementwise.", [](auto x) { return std::ceil(x); })
      .note("Values between -1 and 0 give -0.", "coremltools' value inference, numpy.ceil")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
