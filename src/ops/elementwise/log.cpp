// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void log_gradient(Gradient& g) { g.set("x", g.dy() / (g.x() + g.number("epsilon"))); }

}  // namespace

OpDef define_log() {
  return unary_with_param("log", "Natural logarithm of x + epsilon, elementwise.", "epsilon",
                          [](auto x, auto epsilon) { return std::log(x + epsilon); })
      .or_else(Tensor::scalar(DType::fp32, 1e-45))
      .at(Opset::ios17, [](OpVersion& v) { own_float_type(v, {"epsilon"}); })
      .note(
          "0 gives the logarithm of epsilon, whose default 1e-45 is the smallest float32 and 0 in float16. Negative x "
          "give NaN.",
          "coremltools' value inference, numpy.log(x + epsilon)")
      .gradient(log_gradient)
      .build();
}

}  // namespace moka::ops
