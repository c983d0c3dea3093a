// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/binary.h"

namespace moka::ops {

namespace {

void real_div_gradient(Gradient& g) {
  const Term quotient = g.dy() / g.in("y");
  g.set("x", quotient);
  if (g.wants("y")) g.set("y", -quotient * g.y());
}

}  // namespace

OpDef define_real_div() {
  return binary(
             "real_div", "x / y with broadcasting; integers round towards zero, 0 for a zero divisor.",
             [](auto a, auto b) { return a / b; },
             [](int64_t a, int64_t b) {
               return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b;
             })
      .note("Integers give integers, rounded towards zero. A zero divisor gives 0.",
            "coremltools' test_real_div_int_builder_to_backend; torch.div with rounding_mode trunc")
      .gradient(real_div_gradient)
      .build();
}

}  // namespace moka::ops
