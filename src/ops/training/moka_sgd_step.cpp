// SPDX-License-Identifier: Apache-2.0
#include "ops/common/optimizer.h"

namespace moka::ops {

namespace {

Status sgd_step_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &weight = call.in("weight"), &gradient = call.in("gradient"), &velocity = call.in("velocity");
  const double rate = load_f64(call.in("learning_rate"), 0), momentum = load_f64(call.in("momentum"), 0);
  for (int64_t i = 0; i < weight.count(); i++) {
    const double v = momentum * load_f64(velocity, i) + load_f64(gradient, i), w = load_f64(weight, i);
    store_f64(out[1], i, v);
    store_f64(out[0], i, w - rate * v);
  }
  return {};
}

}  // namespace

OpDef define_moka_sgd_step() {
  return optimizer("moka_sgd_step",
                   "One step of stochastic gradient descent: the weights less learning_rate times the new velocity, "
                   "which is momentum * velocity + gradient; and that velocity.",
                   {"velocity"}, {"learning_rate", "momentum"})
      .reference(sgd_step_reference)
      .note("The weights move by the rate times the whole velocity, so a change of the rate counts at once.",
            "torch.optim.SGD")
      .build();
}

}  // namespace moka::ops
