// SPDX-License-Identifier: Apache-2.0
#include "ops/common/pixel_blocks.h"

#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<int64_t> block_of(const OpCall& call, std::string_view param) {
  const int64_t b = MOKA_TRY(call.integer(param));
  if (b < 1 || b > (1 << 20)) return call.error(param, "a block size of at least 1", cat(b));
  const Type& x = call.type("x");
  if (x.is_ranked() && x.rank() != 4) return call.error("x", "a tensor of rank 4", cat(x));
  return b;
}

/// Steps of the tensor with fewer pixels, [n, c, h, w], seen as [n, position y, position x, c, h, w].
struct ChannelSteps {
  int64_t n, y, x, c, h, w;
};
ChannelSteps channel_steps(const Shape& deep, int64_t block, BlockOrder order) {
  const int64_t plane = deep[2] * deep[3], channels = deep[1] / (block * block);
  const int64_t position = order == BlockOrder::position_first ? channels * plane : plane;
  return {deep[1] * plane, position * block,
          position,        order == BlockOrder::position_first ? plane : block * block * plane,
          deep[3],         1};
}

}  // namespace

Result<std::vector<Type>> infer_to_pixels(const OpCall& call, std::string_view param) {
  const int64_t b = MOKA_TRY(block_of(call, param));
  const Type& x = call.type("x");
  if (!x.is_ranked()) return one(x);
  const Shape& s = x.shape();
  if (s[1] >= 0 && s[1] % (b * b) != 0) return call.error("x", cat("a multiple of ", b * b, " channels"), cat(s[1]));
  return tensor_result(
      call, x.dtype(),
      Shape{s[0], divide_dim(s[1], b * b), MOKA_TRY(multiply_dims(s[2], b)), MOKA_TRY(multiply_dims(s[3], b))});
}

Result<std::vector<Type>> infer_to_channels(const OpCall& call, std::string_view param) {
  const int64_t b = MOKA_TRY(block_of(call, param));
  const Type& x = call.type("x");
  if (!x.is_ranked()) return one(x);
  const Shape& s = x.shape();
  for (int i : {2, 3})
    if (s[i] >= 0 && s[i] % b != 0) return call.error("x", cat("height and width divisible by ", b), cat(s));
  return tensor_result(call, x.dtype(),
                       Shape{s[0], MOKA_TRY(multiply_dims(s[1], b * b)), divide_dim(s[2], b), divide_dim(s[3], b)});
}

StridedCopy channels_to_pixels_copy(const Shape& x, const Shape& o, int64_t block, BlockOrder order) {
  const ChannelSteps from = channel_steps(x, block, order);
  const int64_t width = o[3], plane = o[2] * o[3];
  StridedCopy copy;
  copy.add(o[0], o[1] * plane, from.n);
  copy.add(o[1], plane, from.c);
  copy.add(x[2], block * width, from.h);
  copy.add(block, width, from.y);
  copy.add(x[3], block, from.w);
  copy.add(block, 1, from.x);
  return copy;
}

StridedCopy pixels_to_channels_copy(const Shape& s, const Shape& o, int64_t block, BlockOrder order) {
  const ChannelSteps to = channel_steps(o, block, order);
  const int64_t width = s[3], plane = s[2] * s[3];
  StridedCopy copy;
  copy.add(s[0], to.n, s[1] * plane);
  copy.add(s[1], to.c, plane);
  copy.add(block, to.y, width);
  copy.add(block, to.x, 1);
  copy.add(o[2], to.h, block * width);
  copy.add(o[3], to.w, block);
  return copy;
}

Status channels_to_pixels(const TensorView& out, const TensorView& x, int64_t block, BlockOrder order) {
  channels_to_pixels_copy(x.shape, out.shape, block, order).run(out, 0, x, 0);
  return {};
}

Status pixels_to_channels(const TensorView& out, const TensorView& x, int64_t block, BlockOrder order) {
  pixels_to_channels_copy(x.shape, out.shape, block, order).run(out, 0, x, 0);
  return {};
}

Result<BatchBlocks> batch_blocks(const OpCall& call, std::string_view margins) {
  const Type& x = call.type("x");
  if (x.is_ranked() && x.rank() != 4) return call.error("x", "a tensor of rank 4", cat(x));
  const Ints block = MOKA_TRY(call.ints("block_shape"));
  if (block.size() != 2) return call.error("block_shape", "2 entries", cat(block.size()));
  const TensorView* m = call.value(margins);
  if (m == nullptr || !(m->shape == Shape{2, 2})) return call.error(margins, "a known 2 by 2 table", "something else");
  BatchBlocks b;
  for (int i = 0; i < 2; i++) {
    b.block[i] = block[i];
    if (block[i] < 1 || block[i] > (1 << 20)) return call.error("block_shape", "sizes of at least 1", cat(block[i]));
    for (int k = 0; k < 2; k++) {
      b.margin[i][k] = load_i64(*m, 2 * i + k);
      if (b.margin[i][k] < 0 || b.margin[i][k] > (int64_t{1} << 31))
        return call.error(margins, "entries of at least 0", cat(b.margin[i][k]));
    }
  }
  return b;
}

}  // namespace moka::ops
