// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void acosh_gradient(Gradient& g) { g.set("x", g.dy() / apply("sqrt", square(g.x()) - 1.0)); }

}  // namespace

OpDef define_nn_acosh() {
  return unary("nn_acosh", "Inverse hyperbolic cosine, elementwise; NaN below 1.", [](auto x) { return std::acosh(x); })
      .note("NaN below 1.", "numpy.arccosh")
      .gradient(acosh_gradient)
      .build();
}

}  // namespace moka::ops
