#include "base/scalar_math.h"
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_sigmoid_hard() {
  return unary_with_alpha_beta("sigmoid_hard", "alpha * x + beta clamped to [0, 1], elementwise.",
                               [](auto x, auto alpha, auto beta) { return scalar::sigmoid_hard(x, alpha, beta); })
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"alpha", "beta"});
          })
      .note("NaN stays NaN.", "coremltools' value inference, numpy.minimum and maximum")
      .build();
}

}  // namespace moka::ops
