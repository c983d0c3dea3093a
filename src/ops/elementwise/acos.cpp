// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void acos_gradient(Gradient& g) { g.set("x", -g.dy() / apply("sqrt", 1.0 - square(g.x()))); }

}  // namespace

OpDef define_acos() {
  return unary("acos", "Inverse cosine, elementwise; NaN outside [-1, 1].", [](auto x) { return std::acos(x); })
      .note("NaN outside of [-1, 1].", "coremltools' value inference, numpy.arccos")
      .gradient(acos_gradient)
      .build();
}

}  // namespace moka::ops
