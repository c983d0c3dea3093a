// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/common/channels.h"
#include "ops/common/gradients.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_moka_batch_norm_training(const OpCall& call) {
  MOKA_TRY(check_channel_params(call, 2, {"gamma", "beta"}));
  MOKA_TRY(call.number("epsilon"));
  const Type& x = call.type("x");
  const Type channels = Type::tensor(x.dtype(), Shape{x.is_ranked() ? x.shape()[1] : kAnyDim});
  return std::vector<Type>{x, channels, channels};
}

Status moka_batch_norm_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &y = out[0];
  const TensorView *gamma = call.value("gamma"), *beta = call.value("beta");
  const double epsilon = MOKA_TRY(call.number("epsilon"));
  const auto channels = static_cast<size_t>(x.shape[1]);
  const double n = static_cast<double>(x.shape.count()) / static_cast<double>(channels);
  std::vector<double> mean(channels), variance(channels);
  each_channel_run(x.shape, [&](int64_t c, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; i++) mean[static_cast<size_t>(c)] += load_f64(x, i) / n;
  });
  each_channel_run(x.shape, [&](int64_t c, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; i++) {
      const double d = load_f64(x, i) - mean[static_cast<size_t>(c)];
      variance[static_cast<size_t>(c)] += d * d / n;
    }
  });
  each_channel_run(x.shape, [&](int64_t c, int64_t first, int64_t count) {
    const auto at = static_cast<size_t>(c);
    const double scale = channel_value(gamma, c, 1) / std::sqrt(variance[at] + epsilon);
    for (int64_t i = first; i < first + count; i++)
      store_f64(y, i, (load_f64(x, i) - mean[at]) * scale + channel_value(beta, c, 0));
  });
  for (size_t c = 0; c < channels; c++) {
    store_f64(out[1], static_cast<int64_t>(c), mean[c]);
    store_f64(out[2], static_cast<int64_t>(c), variance[c]);
  }
  return {};
}

void moka_batch_norm_training_gradient(Gradient& g) {
  const Term mean = g.y(1), variance = g.y(2);
  std::vector<NamedArg> args{{"x", g.x().value()},
                             {"dy", g.dy().value()},
                             {"mean", mean.value()},
                             {"variance", variance.value()},
                             {"epsilon", g.scalar(g.number("epsilon"))}};
  if (g.has("gamma")) args.emplace_back("gamma", g.in("gamma").value());
  const std::vector<Term> all = g.call_all("moka_batch_norm_training_gradient", std::move(args), 3);
  if (g.has_failed()) return;
  Term dx = all[0];
  const double n = static_cast<double>(g.x().shape().count()) / static_cast<double>(g.x().shape()[1]);
  Shape wide;
  for (int i = 0; i < g.x().rank(); i++) wide.push_back(i == 1 ? g.x().shape()[1] : 1);
  if (g.is_reached(1)) dx = dx + g.reshape(g.dy(1) * (1 / n), wide);
  if (g.is_reached(2)) dx = dx + (g.x() - g.reshape(mean, wide)) * g.reshape(g.dy(2) * (2 / n), wide);
  g.set("x", dx);
  if (g.wants("gamma")) g.set("gamma", all[1]);
  if (g.wants("beta")) g.set("beta", all[2]);
}

}  // namespace

OpDef define_moka_batch_norm_training() {
  return OpBuilder("moka_batch_norm_training",
                   "Brings each channel of a mini-batch to mean 0 and standard deviation 1, then to beta[channel] + "
                   "gamma[channel] * it. Also gives the mean and the variance of each channel.",
                   Opset::ios13)
      .type_var("T", kF16F32)
      .in("x", "T")
      .in("gamma", "T")
      .optional()
      .in("beta", "T")
      .optional()
      .constant("epsilon", "T")
      .or_else(Tensor::scalar(DType::fp32, 1e-5))
      .infer(infer_moka_batch_norm_training)
      .reference(moka_batch_norm_reference)
      .note("Channels are axis 1. The variance is the population's.", "torch.nn.functional.batch_norm, training=True")
      .gradient(moka_batch_norm_training_gradient)
      .build();
}

}  // namespace moka::ops
