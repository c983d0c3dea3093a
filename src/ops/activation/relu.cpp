// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/scalar_math.h"
#include "ops/common/gradients.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void relu_gradient(Gradient& g) { g.set("x", clamp_gradient(g, g.y(), 0, INFINITY)); }

}  // namespace

OpDef define_relu() {
  return unary("relu", "max(x, 0), elementwise.", [](auto x) { return scalar::relu(x); })
      .note("NaN stays NaN, -0 stays -0.", "torch.relu; numpy.maximum for NaN")
      .gradient(relu_gradient)
      .build();
}

}  // namespace moka::ops
