// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void softsign_gradient(Gradient& g) { g.set("x", g.dy() / square(apply("abs", g.x()) + 1.0)); }

}  // namespace

OpDef define_softsign() {
  return unary("softsign", "x / (1 + |x|), elementwise.", [](auto x) { return x / (decltype(x)(1) + std::fabs(x)); })
      .note("Infinities give NaN.", "the formula in IEEE arithmetic, as torch.nn.functional.softsign")
      .gradient(softsign_gradient)
      .build();
}

}  // namespace moka::ops
