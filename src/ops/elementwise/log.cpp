#include <cmath>

#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_log() {
  return unary_with_param("log", "Natural logarithm of x + epsilon, elementwise.", "epsilon",
                          [](auto x, auto epsilon) { return std::log(x + epsilon); })
      .or_else(Tensor::scalar(DType::fp32, 1e-45))
      .at(Opset::ios17, [](OpVersion& v) { own_float_type(v, {"epsilon"}); })
      .build();
}

}  // namespace moka::ops
