// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ops/common/gradients.h"
#include "ops/common/pool.h"

namespace moka::ops {

namespace {

Status max_pool_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const Window w = MOKA_TRY(pool_window(call));
  pool_each(
      call.in("x"), w, out[0], -std::numeric_limits<double>::infinity(),
      [](double acc, double v) { return v > acc || std::isnan(v) ? v : acc; }, [](double acc, int64_t) { return acc; });
  return {};
}

void max_pool_gradient(Gradient& g) { pool_gradient(g, "moka_max_pool_gradient"); }

}  // namespace

OpDef define_max_pool() {
  OpBuilder b("max_pool", "Largest element of each window; padding never wins.");
  return pool_params(b)
      .infer(infer_pool(3))
      .reference(max_pool_reference)
      .note("Padding never wins, NaN always does. A window wholly in the padding gives -inf.",
            "torch.nn.functional.max_pool2d, whose padding is -inf")
      .gradient(max_pool_gradient)
      .build();
}

}  // namespace moka::ops
