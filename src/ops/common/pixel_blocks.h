// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/common/common.h"
#include "ops/common/strided.h"

/// Moves blocks of pixels to channels and back in [n, c, h, w] tensors.
namespace moka::ops {

/// How the position inside a block becomes part of the channel: channel = position * C + c, or c * block^2 + position.
enum class BlockOrder { position_first, channel_first };

/// [n, c, h, w] -> [n, c / b^2, h * b, w * b]; `param` names the block size b.
Result<std::vector<Type>> infer_to_pixels(const OpCall& call, std::string_view param);
/// [n, c, h, w] -> [n, c * b^2, h / b, w / b].
Result<std::vector<Type>> infer_to_channels(const OpCall& call, std::string_view param);
/// The copies that make these results, from the first element of x to the first of the result.
StridedCopy channels_to_pixels_copy(const Shape& x, const Shape& out, int64_t block, BlockOrder order);
StridedCopy pixels_to_channels_copy(const Shape& x, const Shape& out, int64_t block, BlockOrder order);
Status channels_to_pixels(const TensorView& out, const TensorView& x, int64_t block, BlockOrder order);
Status pixels_to_channels(const TensorView& out, const TensorView& x, int64_t block, BlockOrder order);

/// The checked parameters block_shape, of 2 entries, and a 2 x 2 table of margins.
struct BatchBlocks {
  int64_t block[2];
  int64_t margin[2][2];
};
Result<BatchBlocks> batch_blocks(const OpCall& call, std::string_view margins);

}  // namespace moka::ops
