// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/binary.h"

namespace moka::ops {

namespace {

template <class T>
T floor_divide(T a, T b) {
  if (b == 0) return a / b;
  T rest = std::fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), a / b);
  const T whole = std::floor(quotient);
  return quotient - whole > T(0.5) ? whole + 1 : whole;
}

int64_t divide_down(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

}  // namespace

OpDef define_floor_div() {
  return binary(
             "floor_div", "x / y rounded down, with broadcasting; integers give 0 for a zero divisor.",
             [](auto a, auto b) { return floor_divide(a, b); }, divide_down)
      .note(
          "Floats give the floor of the exact quotient, corrected as in NumPy. A zero divisor gives an infinity or "
          "NaN.",
          "numpy.floor_divide")
      .note("Integers round towards minus infinity. A zero divisor gives 0. The smallest integer divided by -1 wraps.",
            "numpy.floor_divide")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
