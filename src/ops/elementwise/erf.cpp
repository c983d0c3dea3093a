// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void erf_gradient(Gradient& g) { g.set("x", g.dy() * apply("exp", -square(g.x())) * M_2_SQRTPI); }

}  // namespace

OpDef define_erf() {
  return unary("erf", "Gauss error function, elementwise.", [](auto x) { return std::erf(x); })
      .gradient(erf_gradient)
      .build();
}

}  // namespace moka::ops
