// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/common/pool.h"

namespace moka::ops {

namespace {

Status avg_pool_gradient_reference(const OpCall& call, std::span<const TensorView> out) {
  const int64_t n = out[0].count();
  if (n == 0) return {};
  const Window w = MOKA_TRY(pool_window(call)).as_3d();
  const bool exclude = MOKA_TRY(call.flag("exclude_padding_from_average"));
  const TensorView& dy = call.in("dy");
  const auto taps = static_cast<double>(w.taps());
  std::vector<double> sums(static_cast<size_t>(n));
  int64_t at = 0;
  each_window(out[0].shape[0] * out[0].shape[1], w, [&](int64_t first, const WindowPlace& p) {
    const double share = load_f64(dy, at++) / (exclude ? static_cast<double>(p.inside()) : taps);
    p.each(w, first, [&](int64_t i) { sums[static_cast<size_t>(i)] += share; });
  });
  for (int64_t i = 0; i < n; i++) store_f64(out[0], i, sums[static_cast<size_t>(i)]);
  return {};
}

}  // namespace

OpDef define_moka_avg_pool_gradient() {
  OpBuilder b("moka_avg_pool_gradient", "The gradient of avg_pool's x from the gradient dy of its result.",
              Opset::ios13);
  b.constant("exclude_padding_from_average", kBool).or_else(Tensor::boolean(false));
  return pool_params(b)
      .in("dy", "T")
      .infer([pool = infer_pool_gradient(3)](const OpCall& call) -> Result<std::vector<Type>> {
        MOKA_TRY(call.flag("exclude_padding_from_average"));
        return pool(call);
      })
      .reference(avg_pool_gradient_reference)
      .note("Each element of a window gets the same share, by the divisor of avg_pool.",
            "torch.nn.functional.avg_pool2d")
      .build();
}

}  // namespace moka::ops
