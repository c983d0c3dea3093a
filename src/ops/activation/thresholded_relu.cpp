// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void thresholded_relu_gradient(Gradient& g) {
  g.set("x", select(compare("less", g.x(), g.number("alpha")), 0.0, g.dy()));
}

}  // namespace

OpDef define_thresholded_relu() {
  return unary_with_param("thresholded_relu", "x, or 0 where x is below alpha, elementwise.", "alpha",
                          [](auto x, auto alpha) { return x < alpha ? decltype(x)(0) : x; })
      .at(Opset::ios17, [](OpVersion& v) { own_float_type(v, {"alpha"}); })
      .note("An x equal to alpha stays.", "coremltools' definition")
      .gradient(thresholded_relu_gradient)
      .build();
}

}  // namespace moka::ops
