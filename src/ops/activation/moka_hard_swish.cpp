// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void moka_hard_swish_gradient(Gradient& g) {
  const Term middle = g.dy() * (g.x() * (1.0 / 3) + 0.5);
  g.set("x", select(compare("less", g.x(), -3.0), 0.0, select(compare("greater", g.x(), 3.0), g.dy(), middle)));
}

}  // namespace

OpDef define_moka_hard_swish() {
  return unary("moka_hard_swish",
               "x * min(max(x / 6 + 1/2, 0), 1), elementwise. Passes make it of the operations that converters write.",
               [](auto x) { return scalar::hard_swish(x); })
      .note("-inf gives 0, not NaN.",
            "x + 3 clamped to [0, 6] is 0 there; coremltools issue 2625 is about its overflow in float16")
      .gradient(moka_hard_swish_gradient)
      .build();
}

}  // namespace moka::ops
