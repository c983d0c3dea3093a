// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void silu_gradient(Gradient& g) {
  const Term s = apply("sigmoid", g.x());
  g.set("x", g.dy() * s * (1.0 + g.x() * (1.0 - s)));
}

}  // namespace

OpDef define_silu() {
  return unary("silu", "x times its logistic function, elementwise.", [](auto x) { return scalar::silu(x); })
      .note("-inf gives NaN, because infinity is divided by infinity.",
            "x * sigmoid(x) in IEEE arithmetic, as torch.nn.functional.silu")
      .gradient(silu_gradient)
      .build();
}

}  // namespace moka::ops
