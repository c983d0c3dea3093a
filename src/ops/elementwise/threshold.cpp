// SPDX-License-Identifier: Apache-2.0
#include "base/scalar_math.h"
#include "ir/gradient.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

void threshold_gradient(Gradient& g) {
  g.set("x", select(compare("greater_equal", g.x(), g.number("alpha")), g.dy(), 0.0));
}

}  // namespace

OpDef define_threshold() {
  return unary_with_param("threshold", "max(x, alpha), elementwise.", "alpha",
                          [](auto x, auto alpha) { return scalar::at_least(x, alpha); })
      .type_var("T", kF16F32 | kI32)
      .reference([](const OpCall& call, std::span<const TensorView> out) -> Status {
        const double alpha = MOKA_TRY(scalar_param(call, "alpha"));
        const auto whole = is_integer(call.dtype("x")) ? MOKA_TRY(call.integer("alpha")) : 0;
        auto f = [alpha](auto x) { return scalar::at_least(x, static_cast<decltype(x)>(alpha)); };
        auto g = [whole](int64_t x) { return x < whole ? whole : x; };
        map_elements(call.in("x"), out[0], FloatsAndInts<decltype(f), decltype(g)>{f, g});
        return {};
      })
      .note("NaN if x or alpha is NaN.", "coremltools' value inference, numpy.maximum")
      .gradient(threshold_gradient)
      .build();
}

}  // namespace moka::ops
