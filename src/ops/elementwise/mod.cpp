// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/binary.h"

namespace moka::ops {

namespace {

template <class T>
T floor_rest(T a, T b) {
  const T rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(T(0), b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t whole_rest(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

void mod_gradient(Gradient& g) {
  g.set("x", g.dy());
  if (g.wants("y")) g.set("y", -g.dy() * g.call("floor_div", {{"x", g.x().value()}, {"y", g.in("y").value()}}));
}

}  // namespace

OpDef define_mod() {
  return binary(
             "mod",
             "x - y * floor(x / y), the remainder with the sign of y, with broadcasting; integers give 0 for a zero "
             "divisor.",
             [](auto a, auto b) { return floor_rest(a, b); }, whole_rest)
      .note("The remainder has the sign of the divisor. For a zero divisor integers give 0 and floats NaN.",
            "numpy.mod, which is coremltools' value inference")
      .note(
          "Systems differ for operands of different signs: -7 and 3 give 2 here, and -1 on a Mac that was reported.",
          "against this decision, kasper0406/stablehlo-coreml pull request 70: Core ML gives the sign of the dividend")
      .gradient(mod_gradient)
      .build();
}

}  // namespace moka::ops
