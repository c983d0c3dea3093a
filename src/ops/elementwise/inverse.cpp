#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_inverse() {
  return unary_with_param("inverse", "1 / (x + epsilon), elementwise.", "epsilon",
                          [](auto x, auto epsilon) { return decltype(x)(1) / (x + epsilon); })
      .or_else(Tensor::scalar(DType::fp32, 1e-4))
      .at(Opset::ios17, [](OpVersion& v) { own_float_type(v, {"epsilon"}); })
      .note("epsilon is added before the division, whatever the sign of x: x = -epsilon gives an infinity.",
            "coremltools' value inference, numpy.reciprocal(x + epsilon)")
      .build();
}

}  // namespace moka::ops
