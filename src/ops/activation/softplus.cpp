#include "base/scalar_math.h"
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_softplus() {
  return unary("softplus", "log(1 + e^x), elementwise.", [](auto x) { return scalar::softplus(x); })
      .note("Computed as max(x, 0) + log1p(e^-|x|), which does not overflow.",
            "coremltools' value inference; coremltools issue 2687")
      .build();
}

}  // namespace moka::ops
