#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_exp() {
  return unary("exp", "e to the power of x, elementwise.", [](auto x) { return std::exp(x); }).build();
}

}  // namespace moka::ops
