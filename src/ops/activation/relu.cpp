#include "base/scalar_math.h"
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_relu() {
  return unary("relu", "max(x, 0), elementwise.", [](auto x) { return scalar::relu(x); })
      .note("NaN stays NaN, -0 stays -0.", "torch.relu; numpy.maximum for NaN")
      .build();
}

}  // namespace moka::ops
