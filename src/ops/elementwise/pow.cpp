// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/binary.h"

namespace moka::ops {

namespace {

int64_t whole_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    return base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  }
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if (e & 1) result *= square;
    square *= square;
  }
  return static_cast<int64_t>(result);
}

void pow_gradient(Gradient& g) {
  const Term x = g.x(), y = g.in("y");
  if (g.wants("x")) {
    const Term slope = y * g.call("pow", {{"x", x.value()}, {"y", (y - 1.0).value()}});
    g.set("x", g.dy() * select(compare("equal", y, 0.0), 0.0, slope));
  }
  if (g.wants("y")) g.set("y", g.dy() * select(compare("equal", g.y(), 0.0), 0.0, g.y() * apply("log", x)));
}

}  // namespace

OpDef define_pow() {
  return binary(
             "pow", "x to the power of y with broadcasting; integers wrap, negative exponents round towards zero.",
             [](auto a, auto b) { return std::pow(a, b); }, whole_power)
      .note("A negative base with a fractional exponent gives NaN. x^0 and 1^y are 1, also for NaN.",
            "C's pow, numpy.power")
      .note("Powers of integers wrap. A negative exponent gives 1 / x^|y| rounded towards zero.",
            "numpy.power refuses negative exponents; torch.pow truncates")
      .gradient(pow_gradient)
      .build();
}

}  // namespace moka::ops
