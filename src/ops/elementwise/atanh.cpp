#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_atanh() {
  return unary("atanh", "Inverse hyperbolic tangent, elementwise; NaN outside [-1, 1].",
               [](auto x) { return std::atanh(x); })
      .build();
}

}  // namespace moka::ops
