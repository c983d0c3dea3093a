#include "base/scalar_math.h"
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_relu() {
  return unary("relu", "max(x, 0), elementwise.", [](auto x) { return scalar::relu(x); })
      .note("NaN stays NaN, -0 stays -0.", "coremltools' value inference, numpy.maximum; torch.relu")
      .build();
}

}  // namespace moka::ops
