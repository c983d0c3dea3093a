#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_scaled_tanh() {
  return unary_with_alpha_beta("scaled_tanh", "alpha * tanh(beta * x), elementwise.",
                               [](auto x, auto alpha, auto beta) { return alpha * std::tanh(beta * x); })
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"alpha", "beta"});
          })
      .build();
}

}  // namespace moka::ops
