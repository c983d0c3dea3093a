// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void rsqrt_gradient(Gradient& g) { g.set("x", g.dy() * g.y() * square(g.y()) * -0.5); }

}  // namespace

OpDef define_rsqrt() {
  return unary_with_param("rsqrt", "1 / sqrt(x + epsilon), elementwise.", "epsilon",
                          [](auto x, auto epsilon) { return decltype(x)(1) / std::sqrt(x + epsilon); })
      .or_else(Tensor::scalar(DType::fp32, 1e-12))
      .at(Opset::ios17, [](OpVersion& v) { own_float_type(v, {"epsilon"}); })
      .note("epsilon is added to x under the root; 0 gives 1 / sqrt(epsilon).",
            "coremltools' value inference, numpy.sqrt(x + epsilon)")
      .gradient(rsqrt_gradient)
      .build();
}

}  // namespace moka::ops
