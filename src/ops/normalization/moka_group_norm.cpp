// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/channels.h"
#include "ops/common/gradients.h"
#include "ops/common/normalization.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_moka_group_norm(const OpCall& call) {
  MOKA_TRY(check_channel_params(call, 3, {"gamma", "beta"}));
  MOKA_TRY(call.number("epsilon"));
  const int64_t groups = MOKA_TRY(call.integer("groups"));
  const Type& x = call.type("x");
  if (groups < 1) return call.error("groups", "at least 1", cat(groups));
  if (x.is_ranked() && x.shape()[1] >= 0 && x.shape()[1] % groups != 0)
    return call.error("groups", cat("a divisor of the ", x.shape()[1], " channels of x"), cat(groups));
  return one(x);
}

Status moka_group_norm_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  if (x.shape.count() == 0) return {};
  const TensorView *gamma = call.value("gamma"), *beta = call.value("beta");
  const double epsilon = MOKA_TRY(call.number("epsilon"));
  const int64_t groups = MOKA_TRY(call.integer("groups")), inner = x.shape.count(2, x.shape.rank());
  const int64_t channels = x.shape[1] / groups, n = channels * inner;
  for (int64_t g = 0; g < x.shape[0] * groups; g++) {
    double sum = 0, squares = 0;
    for (int64_t i = g * n; i < (g + 1) * n; i++) sum += load_f64(x, i);
    const double mean = sum / static_cast<double>(n);
    for (int64_t i = g * n; i < (g + 1) * n; i++) {
      const double d = load_f64(x, i) - mean;
      squares += d * d;
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
    for (int64_t i = g * n; i < (g + 1) * n; i++) {
      const int64_t c = g % groups * channels + (i - g * n) / inner;
      const double y = (load_f64(x, i) - mean) * scale;
      store_f64(out[0], i, y * channel_value(gamma, c, 1) + channel_value(beta, c, 0));
    }
  }
  return {};
}

void moka_group_norm_gradient(Gradient& g) {
  const Shape& shape = g.x().shape();
  const int64_t groups = g.integer("groups"), channels = shape[1];
  if (shape.count() == 0) return g.set("x", g.dy());
  const Shape split{shape[0], groups, channels / groups, shape.count(2, shape.rank())};
  const auto mean = [&](Term t) {
    return g.call("reduce_mean", {{"x", t.value()}, {"axes", Ints{2, 3}}, {"keep_dims", true}});
  };
  const Term x = g.reshape(g.x(), split), centered = x - mean(x);
  const Term inverse =
      g.call("rsqrt", {{"x", mean(square(centered)).value()}, {"epsilon", g.scalar(g.number("epsilon"))}});
  const Term normal = centered * inverse;
  if (g.wants("x")) {
    const Term scaled = g.has("gamma") ? g.dy() * channel_wise(g, "gamma") : g.dy(), dy = g.reshape(scaled, split);
    g.set("x", g.reshape(inverse * (dy - mean(dy) - normal * mean(dy * normal)), shape));
  }
  if (g.wants("gamma")) g.set("gamma", sum_but_channels(g, g.dy() * g.reshape(normal, shape)));
  if (g.wants("beta")) g.set("beta", sum_but_channels(g, g.dy()));
}

}  // namespace

OpDef define_moka_group_norm() {
  OpBuilder b("moka_group_norm",
              "Brings each group of neighboring channels of each instance to mean 0 and standard deviation 1, then "
              "each channel to beta[channel] + gamma[channel] * it. Passes make it of the operations that converters "
              "write.");
  b.type_var("T", kF16F32).in("x", "T").constant("groups", kI32);
  return finish_norm(b, infer_moka_group_norm, moka_group_norm_reference)
      .note("The variance is the population's. A single element gives beta.", "torch.nn.functional.group_norm")
      .gradient(moka_group_norm_gradient)
      .build();
}

}  // namespace moka::ops
