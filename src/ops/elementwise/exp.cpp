// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void exp_gradient(Gradient& g) { g.set("x", g.dy() * g.y()); }

}  // namespace

OpDef define_exp() {
  return unary("exp", "e to the power of x, elementwise.", [](auto x) { return std::exp(x); })
      .gradient(exp_gradient)
      .build();
}

}  // namespace moka::ops
