#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_acos() {
  return unary("acos", "Inverse cosine, elementwise; NaN outside [-1, 1].", [](auto x) { return std::acos(x); })
      .note("NaN outside of [-1, 1].", "coremltools' value inference, numpy.arccos")
      .build();
}

}  // namespace moka::ops
