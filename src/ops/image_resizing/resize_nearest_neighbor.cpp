// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/sampling.h"

namespace moka::ops {

namespace {

Status resize_nearest_neighbor_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  resize_nearest_2d(call.in("x"), out[0], nearest_half_pixel);
  return {};
}

void resize_nearest_neighbor_gradient(Gradient& g) { resize_gradient(g); }

}  // namespace

OpDef define_resize_nearest_neighbor() {
  return OpBuilder("resize_nearest_neighbor",
                   "Resizes the last two dimensions to a target size: output i reads floor((i + 0.5) * in / out).")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("target_size_height", kI32)
      .constant("target_size_width", kI32)
      .infer(infer_resized)
      .reference(resize_nearest_neighbor_reference)
      .traits(Trait::moves_data_only)
      .note("Output i reads floor((i + 0.5) * in / out), computed with integers.",
            "coremltools' test of resize_nearest_neighbor; tensorflow's half pixel centers")
      .gradient(resize_nearest_neighbor_gradient)
      .build();
}

}  // namespace moka::ops
