#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_atanh() {
  return unary("atanh", "Inverse hyperbolic tangent, elementwise; NaN outside [-1, 1].",
               [](auto x) { return std::atanh(x); })
      .note("1 and -1 give infinities, values beyond them NaN.", "coremltools' value inference, numpy.arctanh")
      .build();
}

}  // namespace moka::ops
