// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void elu_gradient(Gradient& g) {
  g.set("x", select(compare("less", g.x(), 0.0), g.dy() * (g.y() + g.number("alpha")), g.dy()));
}

}  // namespace

OpDef define_elu() {
  return unary_with_param("elu", "x, or alpha * (e^x - 1) where x is negative, elementwise.", "alpha",
                          [](auto x, auto alpha) { return scalar::elu(x, alpha); })
      .at(Opset::ios17, [](OpVersion& v) { own_float_type(v, {"alpha"}); })
      .note("Computed as alpha * expm1(x), which is accurate for small negative x.",
            "coremltools' definition; torch.nn.functional.elu")
      .gradient(elu_gradient)
      .build();
}

}  // namespace moka::ops
