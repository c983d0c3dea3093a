// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gradients.h"
#include "ops/common/pool.h"

namespace moka::ops {

namespace {

Status avg_pool_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const Window w = MOKA_TRY(pool_window(call));
  const bool exclude = MOKA_TRY(call.flag("exclude_padding_from_average"));
  double taps = 1;
  for (int64_t k : w.kernel) taps *= static_cast<double>(k);
  pool_each(
      call.in("x"), w, out[0], 0.0, [](double acc, double v) { return acc + v; },
      [&](double acc, int64_t inside) {
        if (!exclude) return acc / taps;
        return inside > 0 ? acc / static_cast<double>(inside) : 0.0;
      });
  return {};
}

void avg_pool_gradient(Gradient& g) { pool_gradient(g, "moka_avg_pool_gradient"); }

}  // namespace

OpDef define_avg_pool() {
  OpBuilder b("avg_pool",
              "Mean of each window. Elements outside of the input, also those of ceil_mode, count as zeros unless "
              "exclude_padding_from_average is set.");
  b.constant("exclude_padding_from_average", kBool).or_else(Tensor::boolean(false));
  return pool_params(b)
      .infer([pool = infer_pool(3)](const OpCall& call) -> Result<std::vector<Type>> {
        MOKA_TRY(call.flag("exclude_padding_from_average"));
        return pool(call);
      })
      .reference(avg_pool_reference)
      .note(
          "exclude_padding_from_average divides by the elements inside the input. A window wholly in the padding gives "
          "0.",
          "coremltools' definition")
      .note("Elements that ceil_mode adds after the padding count as zeros unless padding is excluded.",
            "coremltools issue 2772, about Core ML differing from PyTorch there")
      .gradient(avg_pool_gradient)
      .build();
}

}  // namespace moka::ops
