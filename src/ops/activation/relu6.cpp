// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ops/common/gradients.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void relu6_gradient(Gradient& g) { g.set("x", clamp_gradient(g, g.y(), 0, 6)); }

}  // namespace

OpDef define_relu6() {
  return unary("relu6", "x clamped to [0, 6], elementwise.",
               [](auto x) { return scalar::clamp(x, decltype(x)(0), decltype(x)(6)); })
      .gradient(relu6_gradient)
      .build();
}

}  // namespace moka::ops
