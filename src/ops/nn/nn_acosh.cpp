#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_nn_acosh() {
  return unary("nn_acosh", "Inverse hyperbolic cosine, elementwise; NaN below 1.", [](auto x) { return std::acosh(x); })
      .note("Below 1 NaN.", "numpy.arccosh")
      .build();
}

}  // namespace moka::ops
