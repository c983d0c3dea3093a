// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void tanh_gradient(Gradient& g) { g.set("x", g.dy() * (1.0 - square(g.y()))); }

}  // namespace

OpDef define_tanh() {
  return unary("tanh", "Hyperbolic tangent, elementwise.", [](auto x) { return std::tanh(x); })
      .gradient(tanh_gradient)
      .build();
}

}  // namespace moka::ops
