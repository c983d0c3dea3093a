// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void sin_gradient(Gradient& g) { g.set("x", g.dy() * apply("cos", g.x())); }

}  // namespace

OpDef define_sin() {
  return unary("sin", "Sine, elementwise.", [](auto x) { return std::sin(x); }).gradient(sin_gradient).build();
}

}  // namespace moka::ops
