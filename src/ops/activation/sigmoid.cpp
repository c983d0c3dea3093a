#include "base/scalar_math.h"
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_sigmoid() {
  return unary("sigmoid", "Logistic function 1 / (1 + e^-x), elementwise.", [](auto x) { return scalar::sigmoid(x); })
      .build();
}

}  // namespace moka::ops
