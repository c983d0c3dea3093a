// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/gradients.h"
#include "ops/common/pool.h"

namespace moka::ops {

namespace {

Status l2_pool_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const Window w = MOKA_TRY(pool_window(call, 2));
  pool_each(
      call.in("x"), w, out[0], 0.0, [](double acc, double v) { return acc + v * v; },
      [](double acc, int64_t) { return std::sqrt(acc); });
  return {};
}

void l2_pool_gradient(Gradient& g) {
  const Window w = g.take(pool_window(g.known(), 2));
  const Term share = select(compare("equal", g.y(), 0.0), 0.0, g.dy() / g.y()) * static_cast<double>(w.as_3d().taps());
  g.set("x", g.x() * g.again_as("moka_avg_pool_gradient", {{"x", g.x().value()}, {"dy", share.value()}}));
}

}  // namespace

OpDef define_l2_pool() {
  OpBuilder b("l2_pool", "Square root of the sum of squares of each window, over one or two spatial dimensions.");
  return pool_params(b)
      .infer(infer_pool(2))
      .reference(l2_pool_reference)
      .gradient(l2_pool_gradient)
      .note("The root of the sum of squares, not of their mean. Padding counts as 0. One or two spatial dimensions.",
            "coremltools' TestL2Pool")
      .build();
}

}  // namespace moka::ops
