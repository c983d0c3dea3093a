#include "base/scalar_math.h"
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_silu() {
  return unary("silu", "x times its logistic function, elementwise.", [](auto x) { return scalar::silu(x); }).build();
}

}  // namespace moka::ops
