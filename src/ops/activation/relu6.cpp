#include "base/scalar_math.h"
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_relu6() {
  return unary("relu6", "x clamped to [0, 6], elementwise.",
               [](auto x) { return scalar::clamp(x, decltype(x)(0), decltype(x)(6)); })
      .build();
}

}  // namespace moka::ops
