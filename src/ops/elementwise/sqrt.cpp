// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void sqrt_gradient(Gradient& g) { g.set("x", g.dy() * 0.5 / g.y()); }

}  // namespace

OpDef define_sqrt() {
  return unary("sqrt", "Square root, elementwise; NaN for negative values.", [](auto x) { return std::sqrt(x); })
      .note("Negative x give NaN, -0 stays.", "coremltools' value inference, numpy.sqrt")
      .gradient(sqrt_gradient)
      .build();
}

}  // namespace moka::ops
