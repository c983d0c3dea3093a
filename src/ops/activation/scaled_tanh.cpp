// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void scaled_tanh_gradient(Gradient& g) {
  const double alpha = g.number("alpha"), beta = g.number("beta");
  g.set("x", g.dy() * (alpha * beta) * (1.0 - square(apply("tanh", g.x() * beta))));
}

}  // namespace

OpDef define_scaled_tanh() {
  return unary_with_alpha_beta("scaled_tanh", "alpha * tanh(beta * x), elementwise.",
                               [](auto x, auto alpha, auto beta) { return alpha * std::tanh(beta * x); })
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"alpha", "beta"});
          })
      .gradient(scaled_tanh_gradient)
      .build();
}

}  // namespace moka::ops
