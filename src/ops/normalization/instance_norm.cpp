// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/channels.h"
#include "ops/common/gradients.h"
#include "ops/common/normalization.h"
#include "ops/common/unary.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_instance_norm(const OpCall& call) {
  MOKA_TRY(check_channel_params(call, 3, {"gamma", "beta"}));
  MOKA_TRY(call.number("epsilon"));
  return one(call.type("x"));
}

Status instance_norm_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const TensorView *gamma = call.value("gamma"), *beta = call.value("beta");
  const double epsilon = MOKA_TRY(call.number("epsilon"));
  each_channel_run(x.shape, [&](int64_t c, int64_t first, int64_t n) {
    double sum = 0, squares = 0;
    for (int64_t i = first; i < first + n; i++) sum += load_f64(x, i);
    const double mean = sum / static_cast<double>(n);
    for (int64_t i = first; i < first + n; i++) {
      const double d = load_f64(x, i) - mean;
      squares += d * d;
    }
    const double scale = channel_value(gamma, c, 1) / std::sqrt(squares / static_cast<double>(n) + epsilon);
    const double shift = channel_value(beta, c, 0);
    for (int64_t i = first; i < first + n; i++) store_f64(out[0], i, (load_f64(x, i) - mean) * scale + shift);
  });
  return {};
}

void instance_norm_gradient(Gradient& g) {
  Ints axes;
  for (int i = 0; i < g.x().rank(); i++)
    if (i > 1) axes.push_back(i);
  normalization_gradient(g, axes, {1});
}

}  // namespace

OpDef define_instance_norm() {
  OpBuilder b("instance_norm",
              "Brings each channel of each instance to mean beta[channel] and standard deviation gamma[channel].");
  b.type_var("T", kF16F32).in("x", "T");
  return finish_norm(b, infer_instance_norm, instance_norm_reference)
      .at(Opset::ios17,
          [](OpVersion& v) {
            own_float_type(v, {"gamma", "beta", "epsilon"});
          })
      .note("The variance is the population's. A single element gives beta.", "torch.nn.functional.instance_norm")
      .gradient(instance_norm_gradient)
      .build();
}

}  // namespace moka::ops
