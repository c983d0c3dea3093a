// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void abs_gradient(Gradient& g) { g.set("x", g.dy() * apply("sign", g.x())); }

}  // namespace

OpDef define_abs() {
  return unary_with_int(
             "abs", "Absolute value, elementwise.", [](auto x) { return std::fabs(x); },
             [](int64_t x) { return x < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x; })
      .note("The smallest int32 stays itself.", "coremltools' value inference, numpy.abs")
      .gradient(abs_gradient)
      .build();
}

}  // namespace moka::ops
