// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ops/common/gradients.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {
Result<std::vector<Type>> infer_strict(const OpCall& call) {
  const double alpha = MOKA_TRY(call.number("alpha")), beta = MOKA_TRY(call.number("beta"));
  if (alpha >= beta) return call.error("alpha", cat("less than beta, ", beta), cat(alpha));
  return one(call.type("x"));
}
void clip_gradient(Gradient& g) { g.set("x", clamp_gradient(g, g.y(), g.number("alpha"), g.number("beta"))); }

}  // namespace

OpDef define_clip() {
  return unary_with_alpha_beta("clip", "Clamps x to [alpha, beta], elementwise.",
                               [](auto x, auto alpha, auto beta) { return scalar::clamp(x, alpha, beta); })
      .at(Opset::ios17, [](OpVersion& v) { v.infer = infer_strict; })
      .note(
          "NaN if x, alpha or beta is NaN. Since iOS17 alpha must be less than beta. Before, a smaller beta wins over "
          "alpha.",
          "coremltools' value inference, numpy.minimum(maximum(x, alpha), beta)")
      .gradient(clip_gradient)
      .build();
}

}  // namespace moka::ops
