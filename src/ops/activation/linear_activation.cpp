// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void linear_activation_gradient(Gradient& g) { g.set("x", g.dy() * g.number("alpha")); }

}  // namespace

OpDef define_linear_activation() {
  return unary_with_alpha_beta("linear_activation", "alpha * x + beta, elementwise.",
                               [](auto x, auto alpha, auto beta) { return alpha * x + beta; })
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"alpha", "beta"});
          })
      .gradient(linear_activation_gradient)
      .build();
}

}  // namespace moka::ops
