#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_nn_asinh() {
  return unary("nn_asinh", "Inverse hyperbolic sine, elementwise.", [](auto x) { return std::asinh(x); }).build();
}

}  // namespace moka::ops
