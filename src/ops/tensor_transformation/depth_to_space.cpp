// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/pixel_blocks.h"

namespace moka::ops {

namespace {

void depth_to_space_gradient(Gradient& g) { g.set("x", g.again_as("space_to_depth", {{"x", g.dy().value()}})); }

}  // namespace

OpDef define_depth_to_space() {
  return OpBuilder("depth_to_space",
                   "Moves channels to blocks of pixels. The position in the block is the slower part of the channel.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("block_size", kI32)
      .infer([](const OpCall& c) { return infer_to_pixels(c, "block_size"); })
      .reference([](const OpCall& c, std::span<const TensorView> out) -> Status {
        const int64_t block = MOKA_TRY(c.integer("block_size"));
        return channels_to_pixels(out[0], c.in("x"), block, BlockOrder::position_first);
      })
      .traits(Trait::moves_data_only)
      .note("Channel (i, j, c), c fastest, goes to position (i, j) of the block.", "tf.nn.depth_to_space in NCHW")
      .gradient(depth_to_space_gradient)
      .build();
}

}  // namespace moka::ops
