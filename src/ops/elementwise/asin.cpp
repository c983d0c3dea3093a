// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void asin_gradient(Gradient& g) { g.set("x", g.dy() / apply("sqrt", 1.0 - square(g.x()))); }

}  // namespace

OpDef define_asin() {
  return unary("asin", "Inverse sine, elementwise; NaN outside [-1, 1].", [](auto x) { return std::asin(x); })
      .note("NaN outside of [-1, 1].", "coremltools' value inference, numpy.arcsin")
      .gradient(asin_gradient)
      .build();
}

}  // namespace moka::ops
