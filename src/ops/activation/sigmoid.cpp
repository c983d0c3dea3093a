// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void sigmoid_gradient(Gradient& g) { g.set("x", g.dy() * g.y() * (1.0 - g.y())); }

}  // namespace

OpDef define_sigmoid() {
  return unary("sigmoid", "Logistic function 1 / (1 + e^-x), elementwise.", [](auto x) { return scalar::sigmoid(x); })
      .gradient(sigmoid_gradient)
      .build();
}

}  // namespace moka::ops
