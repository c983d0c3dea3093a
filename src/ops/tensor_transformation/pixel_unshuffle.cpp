// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/pixel_blocks.h"

namespace moka::ops {

namespace {

void pixel_unshuffle_gradient(Gradient& g) {
  g.set("x", g.call("pixel_shuffle",
                    {{"x", g.dy().value()}, {"upscale_factor", static_cast<int>(g.integer("downscale_factor"))}}));
}

}  // namespace

OpDef define_pixel_unshuffle() {
  return OpBuilder("pixel_unshuffle",
                   "Moves blocks of pixels to channels. The position in the block is the faster part of the channel.",
                   Opset::ios16)
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("downscale_factor", only(DType::uint32))
      .infer([](const OpCall& c) { return infer_to_channels(c, "downscale_factor"); })
      .reference([](const OpCall& c, std::span<const TensorView> out) -> Status {
        const int64_t block = MOKA_TRY(c.integer("downscale_factor"));
        return pixels_to_channels(out[0], c.in("x"), block, BlockOrder::channel_first);
      })
      .traits(Trait::moves_data_only)
      .note("Position (i, j) of the block goes to channel (c, i, j), j fastest.", "torch.nn.functional.pixel_unshuffle")
      .gradient(pixel_unshuffle_gradient)
      .build();
}

}  // namespace moka::ops
