// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/common/pool.h"

namespace moka::ops {

namespace {

Status max_pool_gradient_reference(const OpCall& call, std::span<const TensorView> out) {
  const int64_t n = out[0].count();
  if (n == 0) return {};
  const Window w = MOKA_TRY(pool_window(call)).as_3d();
  const TensorView &x = call.in("x"), &dy = call.in("dy");
  std::vector<double> sums(static_cast<size_t>(n));
  int64_t at = 0;
  each_window(x.shape[0] * x.shape[1], w, [&](int64_t first, const WindowPlace& p) {
    int64_t best = -1;
    double top = 0;
    p.each(w, first, [&](int64_t i) {
      const double v = load_f64(x, i);
      if (best >= 0 && !(v > top || std::isnan(v))) return;
      best = i;
      top = v;
    });
    if (best >= 0) sums[static_cast<size_t>(best)] += load_f64(dy, at);
    at++;
  });
  for (int64_t i = 0; i < n; i++) store_f64(out[0], i, sums[static_cast<size_t>(i)]);
  return {};
}

}  // namespace

OpDef define_moka_max_pool_gradient() {
  OpBuilder b("moka_max_pool_gradient", "The gradient of max_pool's x from the gradient dy of its result.",
              Opset::ios13);
  return pool_params(b)
      .in("dy", "T")
      .infer(infer_pool_gradient(3))
      .reference(max_pool_gradient_reference)
      .note("The first of equal elements of a window gets all of its gradient, and the last NaN before any number.",
            "torch.nn.functional.max_pool2d")
      .build();
}

}  // namespace moka::ops
