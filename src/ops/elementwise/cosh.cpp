#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_cosh() {
  return unary("cosh", "Hyperbolic cosine, elementwise.", [](auto x) { return std::cosh(x); }).build();
}

}  // namespace moka::ops
