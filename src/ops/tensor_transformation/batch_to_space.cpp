// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/gradient.h"
#include "ops/common/pixel_blocks.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_batch_to_space(const OpCall& call) {
  const BatchBlocks b = MOKA_TRY(batch_blocks(call, "crops"));
  const Type& x = call.type("x");
  if (!x.is_ranked()) return one(x);
  const int64_t blocks = b.block[0] * b.block[1];
  if (x.shape()[0] >= 0 && x.shape()[0] % blocks != 0) {
    return call.error("x", cat("a batch divisible by ", blocks), cat(x.shape()[0]));
  }
  Shape out{divide_dim(x.shape()[0], blocks), x.shape()[1], 0, 0};
  for (int i = 0; i < 2; i++) {
    const int64_t full = MOKA_TRY(multiply_dims(x.shape()[2 + i], b.block[i])), crop = b.margin[i][0] + b.margin[i][1];
    if (full >= 0 && crop > full)
      return call.error("crops", cat("at most ", full, " in all at axis ", 2 + i), cat(crop));
    out[2 + i] = full >= 0 ? full - crop : crop == 0 ? full : kAnyDim;
  }
  return tensor_result(call, x.dtype(), out);
}

Status batch_to_space_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const BatchBlocks b = MOKA_TRY(batch_blocks(call, "crops"));
  const Shape &s = x.shape, &o = out[0].shape;
  const auto from = s.strides(), to = o.strides();
  for (int64_t y = 0; y < b.block[0]; y++) {
    for (int64_t c = 0; c < b.block[1]; c++) {
      // Step t of the source goes to t * block + shift of the result.
      const int64_t dy = y - b.margin[0][0], dx = c - b.margin[1][0];
      auto first = [](int64_t shift, int64_t block) { return shift >= 0 ? 0 : (-shift + block - 1) / block; };
      auto last = [](int64_t shift, int64_t block, int64_t size, int64_t steps) {
        return shift >= size ? int64_t{0} : std::min(steps, (size - shift + block - 1) / block);
      };
      const int64_t h0 = first(dy, b.block[0]), h1 = last(dy, b.block[0], o[2], s[2]);
      const int64_t w0 = first(dx, b.block[1]), w1 = last(dx, b.block[1], o[3], s[3]);
      StridedCopy copy;
      copy.add(o[0], to[0], from[0]);
      copy.add(o[1], to[1], from[1]);
      copy.add(h1 - h0, b.block[0] * to[2], from[2]);
      copy.add(w1 - w0, b.block[1], 1);
      copy.run(out[0], (h0 * b.block[0] + dy) * to[2] + w0 * b.block[1] + dx, x,
               (y * b.block[1] + c) * o[0] * from[0] + h0 * from[2] + w0);
    }
  }
  return {};
}

void batch_to_space_gradient(Gradient& g) {
  g.set("x", g.call("space_to_batch", {{"x", g.dy().value()},
                                       {"block_shape", g.in("block_shape").value()},
                                       {"paddings", g.in("crops").value()}}));
}

}  // namespace

OpDef define_batch_to_space() {
  return OpBuilder("batch_to_space",
                   "Moves parts of the batch axis to positions inside blocks of pixels, then crops the margins.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("block_shape", kI32)
      .constant("crops", kI32)
      .infer(infer_batch_to_space)
      .reference(batch_to_space_reference)
      .traits(Trait::moves_data_only)
      .note("The position in the block is the slower part of the batch.", "tf.batch_to_space")
      .gradient(batch_to_space_gradient)
      .build();
}

}  // namespace moka::ops
