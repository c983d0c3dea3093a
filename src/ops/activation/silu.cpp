#include "base/scalar_math.h"
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_silu() {
  return unary("silu", "x times its logistic function, elementwise.", [](auto x) { return scalar::silu(x); })
      .note("-inf gives NaN, because infinity is divided by infinity.",
            "x * sigmoid(x) in IEEE arithmetic, as torch.nn.functional.silu")
      .build();
}

}  // namespace moka::ops
