// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_round() {
  return unary("round", "Rounds to the nearest integer, halves to the even one, elementwise.",
               [](auto x) { return std::nearbyint(x); })
      .note("Halves go to the even neighbor; -0.5 gives -0.", "coremltools' value inference, numpy.round")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
