// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void tan_gradient(Gradient& g) { g.set("x", g.dy() * (1.0 + square(g.y()))); }

}  // namespace

OpDef define_tan() {
  return unary("tan", "Tangent, elementwise.", [](auto x) { return std::tan(x); }).gradient(tan_gradient).build();
}

}  // namespace moka::ops
