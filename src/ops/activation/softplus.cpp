#include "base/scalar_math.h"
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_softplus() {
  return unary("softplus", "log(1 + e^x), elementwise.", [](auto x) { return scalar::softplus(x); }).build();
}

}  // namespace moka::ops
