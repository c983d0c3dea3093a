// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void asinh_gradient(Gradient& g) { g.set("x", g.dy() / apply("sqrt", square(g.x()) + 1.0)); }

}  // namespace

OpDef define_nn_asinh() {
  return unary("nn_asinh", "Inverse hyperbolic sine, elementwise.", [](auto x) { return std::asinh(x); })
      .gradient(asinh_gradient)
      .build();
}

}  // namespace moka::ops
