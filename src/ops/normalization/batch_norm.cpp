// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/channels.h"
#include "ops/common/gradients.h"
#include "ops/common/normalization.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_batch_norm(const OpCall& call) {
  MOKA_TRY(check_channel_params(call, 2, {"mean", "variance", "gamma", "beta"}));
  MOKA_TRY(call.number("epsilon"));
  return one(call.type("x"));
}

Status batch_norm_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &mean = call.in("mean"), &variance = call.in("variance"), &y = out[0];
  const TensorView *gamma = call.value("gamma"), *beta = call.value("beta");
  const double epsilon = MOKA_TRY(call.number("epsilon"));
  each_channel_run(x.shape, [&](int64_t c, int64_t first, int64_t n) {
    const double scale = channel_value(gamma, c, 1) / std::sqrt(load_f64(variance, c) + epsilon);
    const double shift = channel_value(beta, c, 0), center = load_f64(mean, c);
    if (x.dtype == DType::fp32) {
      const float* from = x.as<float>() + first;
      float* to = y.as<float>() + first;
      for (int64_t i = 0; i < n; i++)
        to[i] = static_cast<float>((static_cast<double>(from[i]) - center) * scale + shift);
    } else {
      for (int64_t i = first; i < first + n; i++) store_f64(y, i, (load_f64(x, i) - center) * scale + shift);
    }
  });
  return {};
}

void batch_norm_gradient(Gradient& g) {
  if ((g.wants("gamma") || g.wants("beta")) && !g.wants("mean") && !g.wants("variance")) {
    std::vector<NamedArg> args{{"x", g.x().value()},
                               {"dy", g.dy().value()},
                               {"mean", g.in("mean").value()},
                               {"variance", g.in("variance").value()},
                               {"epsilon", g.scalar(g.number("epsilon"))}};
    if (g.has("gamma")) args.emplace_back("gamma", g.in("gamma").value());
    const auto parts = g.call_all("moka_batch_norm_gradient", std::move(args), 3);
    g.set("x", parts[0]);
    g.set("gamma", parts[1]);
    g.set("beta", parts[2]);
    return;
  }
  const Term x = g.x(), mean = channel_wise(g, "mean"), variance = channel_wise(g, "variance");
  const Term inverse = g.call("rsqrt", {{"x", variance.value()}, {"epsilon", g.scalar(g.number("epsilon"))}});
  const Term dy = g.has("gamma") ? g.dy() * channel_wise(g, "gamma") : g.dy();
  const Term dx = dy * inverse, centered = x - mean;
  g.set("x", dx);
  if (g.wants("mean")) g.set("mean", -sum_but_channels(g, dx));
  if (g.wants("variance")) g.set("variance", sum_but_channels(g, dx * centered * square(inverse) * -0.5));
  if (g.wants("gamma")) g.set("gamma", sum_but_channels(g, g.dy() * centered * inverse));
  if (g.wants("beta")) g.set("beta", sum_but_channels(g, g.dy()));
}

}  // namespace

OpDef define_batch_norm() {
  OpBuilder b("batch_norm", "gamma * (x - mean) / sqrt(variance + epsilon) + beta, with one of each per channel.");
  b.type_var("T", kF16F32).in("x", "T").constant("mean", "T").constant("variance", "T");
  return finish_norm(b, infer_batch_norm, batch_norm_reference)
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"mean", "variance", "gamma", "beta", "epsilon"});
          })
      .note("epsilon is added to the variance before the root. Channels are axis 1.", "coremltools' definition")
      .gradient(batch_norm_gradient)
      .build();
}

}  // namespace moka::ops
