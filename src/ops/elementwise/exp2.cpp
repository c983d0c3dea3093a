// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void exp2_gradient(Gradient& g) { g.set("x", g.dy() * g.y() * M_LN2); }

}  // namespace

OpDef define_exp2() {
  return unary(
             "exp2", "2 to the power of x, elementwise; integer results are truncated and saturate.",
             [](auto x) { return std::exp2(x); }, kF16F32 | kI32)
      .note("Integer results are truncated and saturate.",
            "int32 is allowed by the definition, which does not say how 2^-1 rounds; NumPy's cast")
      .gradient(exp2_gradient)
      .build();
}

}  // namespace moka::ops
