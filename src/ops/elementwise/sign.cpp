// SPDX-License-Identifier: Apache-2.0
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_sign() {
  return unary_with_int(
             "sign", "-1, 0 or 1 by the sign of x, elementwise; NaN stays.",
             [](auto x) { return x > 0   ? decltype(x)(1)
                                 : x < 0 ? decltype(x)(-1)
                                         : x; },
             [](int64_t x) { return int64_t{x > 0} - int64_t{x < 0}; })
      .note("Zeros and NaN stay as they are.", "coremltools' value inference, numpy.sign, but for the sign of -0")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
