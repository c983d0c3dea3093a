// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void leaky_relu_gradient(Gradient& g) {
  g.set("x", select(compare("less", g.x(), 0.0), g.dy() * g.number("alpha"), g.dy()));
}

}  // namespace

OpDef define_leaky_relu() {
  return unary_with_param("leaky_relu", "x, or alpha * x where x is negative, elementwise.", "alpha",
                          [](auto x, auto alpha) { return scalar::leaky_relu(x, alpha); })
      .at(Opset::ios17, [](OpVersion& v) { own_float_type(v, {"alpha"}); })
      .note("0 and -0 are not negative.", "coremltools' definition")
      .gradient(leaky_relu_gradient)
      .build();
}

}  // namespace moka::ops
