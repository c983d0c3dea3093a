// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void clamped_relu_gradient(Gradient& g) {
  g.set("x", select(compare("less", g.y(), g.number("beta")),
                    select(compare("less", g.x(), 0.0), g.dy() * g.number("alpha"), g.dy()), 0.0));
}

}  // namespace

OpDef define_clamped_relu() {
  return unary_with_alpha_beta("clamped_relu",
                               "min(x, beta), or min(alpha * x, beta) where x is negative, elementwise.",
                               [](auto x, auto alpha, auto beta) {
                                 auto y = x < 0 ? alpha * x : x;
                                 return y > beta ? beta : y;
                               })
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"alpha", "beta"});
          })
      .note("Negative x is multiplied by alpha first. beta is an upper limit only.",
            "coremltools' definition and its value inference")
      .gradient(clamped_relu_gradient)
      .build();
}

}  // namespace moka::ops
