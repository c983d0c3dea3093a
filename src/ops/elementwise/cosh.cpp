// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void cosh_gradient(Gradient& g) { g.set("x", g.dy() * apply("sinh", g.x())); }

}  // namespace

OpDef define_cosh() {
  return unary("cosh", "Hyperbolic cosine, elementwise.", [](auto x) { return std::cosh(x); })
      .gradient(cosh_gradient)
      .build();
}

}  // namespace moka::ops
