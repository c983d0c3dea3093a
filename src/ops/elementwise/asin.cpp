#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_asin() {
  return unary("asin", "Inverse sine, elementwise; NaN outside [-1, 1].", [](auto x) { return std::asin(x); })
      .note("NaN outside of [-1, 1].", "coremltools' value inference, numpy.arcsin")
      .build();
}

}  // namespace moka::ops
