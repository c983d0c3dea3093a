#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_nn_acosh() {
  return unary("nn_acosh", "Inverse hyperbolic cosine, elementwise; NaN below 1.", [](auto x) { return std::acosh(x); })
      .note("NaN below 1.", "numpy.arccosh")
      .build();
}

}  // namespace moka::ops
