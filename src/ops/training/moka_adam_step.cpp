// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/optimizer.h"

namespace moka::ops {

namespace {

Status adam_step_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &weight = call.in("weight"), &gradient = call.in("gradient"), &first = call.in("first_moment"),
                   &second = call.in("second_moment");
  const auto number = [&](std::string_view param) { return load_f64(call.in(param), 0); };
  const double rate = number("learning_rate"), beta_1 = number("beta_1"), beta_2 = number("beta_2"),
               epsilon = number("epsilon"), step = number("step");
  const double size = rate / (1 - std::pow(beta_1, step)), scale = 1 / std::sqrt(1 - std::pow(beta_2, step));
  for (int64_t i = 0; i < weight.count(); i++) {
    const double g = load_f64(gradient, i), w = load_f64(weight, i);
    const double m = beta_1 * load_f64(first, i) + (1 - beta_1) * g;
    const double v = beta_2 * load_f64(second, i) + (1 - beta_2) * g * g;
    store_f64(out[1], i, m);
    store_f64(out[2], i, v);
    store_f64(out[0], i, w - size * m / (std::sqrt(v) * scale + epsilon));
  }
  return {};
}

}  // namespace

OpDef define_moka_adam_step() {
  return optimizer("moka_adam_step",
                   "One step of Adam: the new weights, and the running means of the gradient and of its square. `step` "
                   "counts from 1.",
                   {"first_moment", "second_moment"}, {"learning_rate", "beta_1", "beta_2", "epsilon", "step"})
      .reference(adam_step_reference)
      .note("epsilon is added to the root after the bias of the running mean is corrected.", "torch.optim.Adam")
      .build();
}

}  // namespace moka::ops
