// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"

namespace moka::ops {

namespace {

Status moka_parameter_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("initial");
  copy_elements(out[0], 0, x, 0, x.count());
  return {};
}

}  // namespace

OpDef define_moka_parameter() {
  return OpBuilder("moka_parameter",
                   "Weights that are fixed while a prediction runs and may be replaced between two. Their value is "
                   "`initial` until they are.",
                   Opset::ios13)
      .type_var("T", kF16F32)
      .constant("initial", "T")
      .infer(same_as("initial"))
      .reference(moka_parameter_reference)
      .traits(Trait::parameter)
      .note("Passes and kernels may use its value, but no pass may compute with it.", "docs/parameters.md")
      .build();
}

}  // namespace moka::ops
