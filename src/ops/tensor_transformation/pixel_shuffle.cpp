// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/pixel_blocks.h"

namespace moka::ops {

namespace {

void pixel_shuffle_gradient(Gradient& g) {
  g.set("x", g.call("pixel_unshuffle",
                    {{"x", g.dy().value()},
                     {"downscale_factor", Tensor::scalar_i64(DType::uint32, g.integer("upscale_factor"))}}));
}

}  // namespace

OpDef define_pixel_shuffle() {
  return OpBuilder("pixel_shuffle",
                   "Moves channels to blocks of pixels. The position in the block is the faster part of the channel.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("upscale_factor", kI32)
      .infer([](const OpCall& c) { return infer_to_pixels(c, "upscale_factor"); })
      .reference([](const OpCall& c, std::span<const TensorView> out) -> Status {
        const int64_t block = MOKA_TRY(c.integer("upscale_factor"));
        return channels_to_pixels(out[0], c.in("x"), block, BlockOrder::channel_first);
      })
      .traits(Trait::moves_data_only)
      .note("Channel (c, i, j), j fastest, goes to position (i, j) of the block.", "torch.nn.functional.pixel_shuffle")
      .gradient(pixel_shuffle_gradient)
      .build();
}

}  // namespace moka::ops
