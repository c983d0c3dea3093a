// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/scalar_math.h"
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void gelu_gradient(Gradient& g) {
  const Term x = g.x();
  const std::string_view mode = g.text("mode");
  if (mode == "EXACT") {
    const Term density = apply("exp", square(x) * -0.5) * (0.5 * M_SQRT1_2 * M_2_SQRTPI);
    g.set("x", g.dy() * ((apply("erf", x * M_SQRT1_2) + 1.0) * 0.5 + x * density));
  } else if (mode == "SIGMOID_APPROXIMATION") {
    const Term s = apply("sigmoid", x * 1.702);
    g.set("x", g.dy() * s * (1.0 + x * 1.702 * (1.0 - s)));
  } else {
    constexpr double scale = M_SQRT1_2 * M_2_SQRTPI, cube = 0.044715;
    const Term t = apply("tanh", x * (1.0 + square(x) * cube) * scale);
    g.set("x", g.dy() * ((t + 1.0) * 0.5 + x * (1.0 - square(t)) * (1.0 + square(x) * (3 * cube)) * (0.5 * scale)));
  }
}

}  // namespace

OpDef define_gelu() {
  return unary("gelu",
               "Gaussian error linear unit, elementwise: exact, or approximated by tanh or the logistic function.",
               [](auto x) { return scalar::gelu(x); })
      .constant("mode", kString)
      .one_of({"EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"})
      .or_else(Tensor::text("EXACT"))
      .infer([](const OpCall& call) -> Result<std::vector<Type>> {
        const std::string_view mode = MOKA_TRY(call.text("mode"));
        if (mode != "EXACT" && mode != "TANH_APPROXIMATION" && mode != "SIGMOID_APPROXIMATION") {
          return call.error("mode", "EXACT, TANH_APPROXIMATION or SIGMOID_APPROXIMATION", mode);
        }
        return one(call.type("x"));
      })
      .reference([](const OpCall& call, std::span<const TensorView> out) -> Status {
        const std::string_view mode = MOKA_TRY(call.text("mode"));
        auto run = [&](auto f) { map_elements(call.in("x"), out[0], FloatsOnly<decltype(f)>{f}); };
        if (mode == "TANH_APPROXIMATION") {
          run([](auto x) { return scalar::gelu_tanh(x); });
        } else if (mode == "SIGMOID_APPROXIMATION") {
          run([](auto x) { return scalar::gelu_sigmoid(x); });
        } else {
          run([](auto x) { return scalar::gelu(x); });
        }
        return {};
      })
      .note("EXACT uses the error function; the approximations use sqrt(2/pi), 0.044715 and 1.702.",
            "coremltools' definition")
      .note("-inf gives NaN with EXACT and TANH_APPROXIMATION, which multiply infinity by 0.",
            "the formula in IEEE arithmetic, as torch.nn.functional.gelu")
      .gradient(gelu_gradient)
      .build();
}

}  // namespace moka::ops
