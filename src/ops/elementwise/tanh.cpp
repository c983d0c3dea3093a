#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_tanh() {
  return unary("tanh", "Hyperbolic tangent, elementwise.", [](auto x) { return std::tanh(x); }).build();
}

}  // namespace moka::ops
