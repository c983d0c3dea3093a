#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_sinh() {
  return unary("sinh", "Hyperbolic sine, elementwise.", [](auto x) { return std::sinh(x); }).build();
}

}  // namespace moka::ops
