#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_exp2() {
  return unary(
             "exp2", "2 to the power of x, elementwise; integer results are truncated and saturate.",
             [](auto x) { return std::exp2(x); }, kF16F32 | kI32)
      .build();
}

}  // namespace moka::ops
