// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void softplus_gradient(Gradient& g) { g.set("x", g.dy() * apply("sigmoid", g.x())); }

}  // namespace

OpDef define_softplus() {
  return unary("softplus", "log(1 + e^x), elementwise.", [](auto x) { return scalar::softplus(x); })
      .note("Computed as max(x, 0) + log1p(e^-|x|), which does not overflow.",
            "coremltools' value inference; coremltools issue 2687")
      .gradient(softplus_gradient)
      .build();
}

}  // namespace moka::ops
