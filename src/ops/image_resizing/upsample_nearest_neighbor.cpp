// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/sampling.h"

namespace moka::ops {

namespace {

Status upsample_nearest_neighbor_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  resize_nearest_2d(call.in("x"), out[0], nearest_top_left);
  return {};
}

void upsample_nearest_neighbor_gradient(Gradient& g) { resize_gradient(g); }

}  // namespace

OpDef define_upsample_nearest_neighbor() {
  return upsample_builder(
             "upsample_nearest_neighbor",
             "Resizes the last two dimensions by scale factors, repeating elements: output i reads floor(i * in "
             "/ out).")
      .infer(infer_upsampled)
      .reference(upsample_nearest_neighbor_reference)
      .traits(Trait::moves_data_only)
      .note("Output i reads floor(i * in / out), computed with integers.", "torch.nn.functional.interpolate, nearest")
      .gradient(upsample_nearest_neighbor_gradient)
      .build();
}

}  // namespace moka::ops
