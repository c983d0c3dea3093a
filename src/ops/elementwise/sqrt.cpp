#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_sqrt() {
  return unary("sqrt", "Square root, elementwise; NaN for negative values.", [](auto x) { return std::sqrt(x); })
      .note("Negative x give NaN, -0 stays.", "coremltools' value inference, numpy.sqrt")
      .build();
}

}  // namespace moka::ops
