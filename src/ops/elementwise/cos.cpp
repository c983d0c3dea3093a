// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void cos_gradient(Gradient& g) { g.set("x", -g.dy() * apply("sin", g.x())); }

}  // namespace

OpDef define_cos() {
  return unary("cos", "Cosine, elementwise.", [](auto x) { return std::cos(x); }).gradient(cos_gradient).build();
}

}  // namespace moka::ops
