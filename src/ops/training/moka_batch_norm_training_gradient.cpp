// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/common/batch_norm_gradient.h"
#include "ops/common/channels.h"

namespace moka::ops {

namespace {

Status moka_batch_norm_training_gradient_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &dy = call.in("dy"), &mean = call.in("mean"), &variance = call.in("variance");
  const TensorView* gamma = call.value("gamma");
  const double epsilon = MOKA_TRY(call.number("epsilon"));
  const auto channels = static_cast<size_t>(x.shape[1]);
  const double n = static_cast<double>(x.shape.count()) / static_cast<double>(channels);
  std::vector<double> scale(channels), sums(channels), products(channels);  // of dy, and of dy times normalized x
  for (size_t c = 0; c < channels; c++) scale[c] = 1 / std::sqrt(load_f64(variance, static_cast<int64_t>(c)) + epsilon);
  const auto normalized = [&](int64_t c, int64_t i) {
    return (load_f64(x, i) - load_f64(mean, c)) * scale[static_cast<size_t>(c)];
  };
  each_channel_run(x.shape, [&](int64_t c, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; i++) {
      sums[static_cast<size_t>(c)] += load_f64(dy, i);
      products[static_cast<size_t>(c)] += load_f64(dy, i) * normalized(c, i);
    }
  });
  each_channel_run(x.shape, [&](int64_t c, int64_t first, int64_t count) {
    const auto at = static_cast<size_t>(c);
    for (int64_t i = first; i < first + count; i++)
      store_f64(out[0], i,
                (load_f64(dy, i) - sums[at] / n - normalized(c, i) * products[at] / n) * scale[at] *
                    channel_value(gamma, c, 1));
  });
  for (size_t c = 0; c < channels; c++) {
    store_f64(out[1], static_cast<int64_t>(c), products[c]);
    store_f64(out[2], static_cast<int64_t>(c), sums[c]);
  }
  return {};
}

}  // namespace

OpDef define_moka_batch_norm_training_gradient() {
  return batch_norm_gradient_builder(
             "moka_batch_norm_training_gradient",
             "The gradients of moka_batch_norm_training's x, gamma and beta from the gradient dy of its first "
             "result, and from the mean and variance that it found.")
      .reference(moka_batch_norm_training_gradient_reference)
      .note("The mean and the variance depend on x as well.", "torch.autograd")
      .build();
}

}  // namespace moka::ops
