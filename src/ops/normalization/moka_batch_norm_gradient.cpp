// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/common/batch_norm_gradient.h"
#include "ops/common/channels.h"
#include "ops/common/common.h"

namespace moka::ops {

namespace {

Status batch_norm_gradient_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &dy = call.in("dy"), &mean = call.in("mean"), &variance = call.in("variance");
  const TensorView* gamma = call.has("gamma") ? &call.in("gamma") : nullptr;
  const double epsilon = MOKA_TRY(call.number("epsilon"));
  const auto channels = static_cast<size_t>(x.shape[1]);
  std::vector<double> of_gamma(channels), of_beta(channels);
  each_channel_run(x.shape, [&](int64_t c, int64_t first, int64_t n) {
    const double inverse = 1 / std::sqrt(load_f64(variance, c) + epsilon), center = load_f64(mean, c);
    const double scale = channel_value(gamma, c, 1) * inverse;
    for (int64_t i = first; i < first + n; i++) {
      const double d = load_f64(dy, i);
      store_f64(out[0], i, d * scale);
      of_gamma[static_cast<size_t>(c)] += d * (load_f64(x, i) - center) * inverse;
      of_beta[static_cast<size_t>(c)] += d;
    }
  });
  for (size_t c = 0; c < channels; c++) {
    store_f64(out[1], static_cast<int64_t>(c), of_gamma[c]);
    store_f64(out[2], static_cast<int64_t>(c), of_beta[c]);
  }
  return {};
}

}  // namespace

OpDef define_moka_batch_norm_gradient() {
  return batch_norm_gradient_builder(
             "moka_batch_norm_gradient",
             "The gradients of batch_norm's x, gamma and beta from the gradient dy of its result.")
      .reference(batch_norm_gradient_reference)
      .note("mean and variance are numbers of their own: no gradient reaches x through them.",
            "torch.nn.functional.batch_norm without training")
      .build();
}

}  // namespace moka::ops
