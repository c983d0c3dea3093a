// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void square_gradient(Gradient& g) { g.set("x", g.dy() * g.x() * 2.0); }

}  // namespace

OpDef define_square() {
  return unary_with_int(
             "square", "x times x, elementwise; integers wrap.", [](auto x) { return x * x; },
             [](int64_t x) { return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x)); })
      .gradient(square_gradient)
      .build();
}

}  // namespace moka::ops
