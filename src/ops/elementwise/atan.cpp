// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void atan_gradient(Gradient& g) { g.set("x", g.dy() / (1.0 + square(g.x()))); }

}  // namespace

OpDef define_atan() {
  return unary("atan", "Inverse tangent, elementwise.", [](auto x) { return std::atan(x); })
      .gradient(atan_gradient)
      .build();
}

}  // namespace moka::ops
