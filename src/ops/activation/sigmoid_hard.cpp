// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void sigmoid_hard_gradient(Gradient& g) {
  g.set("x", select(compare("greater", g.y(), 0.0),
                    select(compare("less", g.y(), 1.0), g.dy() * g.number("alpha"), 0.0), 0.0));
}

}  // namespace

OpDef define_sigmoid_hard() {
  return unary_with_alpha_beta("sigmoid_hard", "alpha * x + beta clamped to [0, 1], elementwise.",
                               [](auto x, auto alpha, auto beta) { return scalar::sigmoid_hard(x, alpha, beta); })
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"alpha", "beta"});
          })
      .note("NaN stays NaN.", "coremltools' value inference, numpy.minimum and maximum")
      .gradient(sigmoid_hard_gradient)
      .build();
}

}  // namespace moka::ops
