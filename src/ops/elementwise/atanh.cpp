// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void atanh_gradient(Gradient& g) { g.set("x", g.dy() / (1.0 - square(g.x()))); }

}  // namespace

OpDef define_atanh() {
  return unary("atanh", "Inverse hyperbolic tangent, elementwise; NaN outside [-1, 1].",
               [](auto x) { return std::atanh(x); })
      .note("1 and -1 give infinities, values beyond them NaN.", "coremltools' value inference, numpy.arctanh")
      .gradient(atanh_gradient)
      .build();
}

}  // namespace moka::ops
