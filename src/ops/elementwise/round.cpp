#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_round() {
  return unary("round", "Rounds to the nearest integer, halves to the even one, elementwise.",
               [](auto x) { return std::nearbyint(x); })
      .build();
}

}  // namespace moka::ops
