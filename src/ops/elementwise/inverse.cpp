// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void inverse_gradient(Gradient& g) { g.set("x", -g.dy() * square(g.y())); }

}  // namespace

OpDef define_inverse() {
  return unary_with_param("inverse", "1 / (x + epsilon), elementwise.", "epsilon",
                          [](auto x, auto epsilon) { return decltype(x)(1) / (x + epsilon); })
      .or_else(Tensor::scalar(DType::fp32, 1e-4))
      .at(Opset::ios17, [](OpVersion& v) { own_float_type(v, {"epsilon"}); })
      .note("epsilon is added before the division, whatever the sign of x: x = -epsilon gives an infinity.",
            "coremltools' value inference, numpy.reciprocal(x + epsilon)")
      .gradient(inverse_gradient)
      .build();
}

}  // namespace moka::ops
