// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/pixel_blocks.h"

namespace moka::ops {

namespace {

void space_to_depth_gradient(Gradient& g) { g.set("x", g.again_as("depth_to_space", {{"x", g.dy().value()}})); }

}  // namespace

OpDef define_space_to_depth() {
  return OpBuilder("space_to_depth",
                   "Moves blocks of pixels to channels. The position in the block is the slower part of the channel.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("block_size", kI32)
      .infer([](const OpCall& c) { return infer_to_channels(c, "block_size"); })
      .reference([](const OpCall& c, std::span<const TensorView> out) -> Status {
        const int64_t block = MOKA_TRY(c.integer("block_size"));
        return pixels_to_channels(out[0], c.in("x"), block, BlockOrder::position_first);
      })
      .traits(Trait::moves_data_only)
      .note("Position (i, j) of the block goes to channel (i, j, c), c fastest.", "tf.nn.space_to_depth in NCHW")
      .gradient(space_to_depth_gradient)
      .build();
}

}  // namespace moka::ops
