#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_linear_activation() {
  return unary_with_alpha_beta("linear_activation", "alpha * x + beta, elementwise.",
                               [](auto x, auto alpha, auto beta) { return alpha * x + beta; })
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"alpha", "beta"});
          })
      .build();
}

}  // namespace moka::ops
