// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void sinh_gradient(Gradient& g) { g.set("x", g.dy() * apply("cosh", g.x())); }

}  // namespace

OpDef define_sinh() {
  return unary("sinh", "Hyperbolic sine, elementwise.", [](auto x) { return std::sinh(x); })
      .gradient(sinh_gradient)
      .build();
}

}  // namespace moka::ops
