// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/gradient.h"
#include "ops/common/pixel_blocks.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_space_to_batch(const OpCall& call) {
  const BatchBlocks b = MOKA_TRY(batch_blocks(call, "paddings"));
  const Type& x = call.type("x");
  if (!x.is_ranked()) return one(x);
  Shape out{MOKA_TRY(multiply_dims(x.shape()[0], b.block[0] * b.block[1])), x.shape()[1], 0, 0};
  for (int i = 0; i < 2; i++) {
    const int64_t padded = MOKA_TRY(add_dims(x.shape()[2 + i], b.margin[i][0] + b.margin[i][1]));
    if (padded >= 0 && padded % b.block[i] != 0) {
      return call.error("paddings", cat("padded sizes divisible by the block, ", b.block[i]), cat(padded));
    }
    out[2 + i] = divide_dim(padded, b.block[i]);
  }
  return tensor_result(call, x.dtype(), out);
}

/// The range of steps t >= 0 for which t * block + shift is in [0, size).
struct Range {
  int64_t first, last;
};
Range inside(int64_t shift, int64_t block, int64_t size, int64_t steps) {
  const int64_t first = shift >= 0 ? 0 : (-shift + block - 1) / block;
  const int64_t last = shift >= size ? 0 : (size - shift + block - 1) / block;
  return {std::min(first, steps), std::min(std::max(last, first), steps)};
}

Status space_to_batch_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const BatchBlocks b = MOKA_TRY(batch_blocks(call, "paddings"));
  const Shape &s = x.shape, &o = out[0].shape;
  const auto from = s.strides(), to = o.strides();
  zero_elements(out[0], 0, out[0].count());
  for (int64_t y = 0; y < b.block[0]; y++) {
    for (int64_t c = 0; c < b.block[1]; c++) {
      const int64_t dy = y - b.margin[0][0], dx = c - b.margin[1][0];
      const Range h = inside(dy, b.block[0], s[2], o[2]), w = inside(dx, b.block[1], s[3], o[3]);
      StridedCopy copy;
      copy.add(s[0], to[0], from[0]);
      copy.add(s[1], to[1], from[1]);
      copy.add(h.last - h.first, to[2], b.block[0] * from[2]);
      copy.add(w.last - w.first, 1, b.block[1]);
      copy.run(out[0], (y * b.block[1] + c) * s[0] * to[0] + h.first * to[2] + w.first, x,
               (h.first * b.block[0] + dy) * from[2] + w.first * b.block[1] + dx);
    }
  }
  return {};
}

void space_to_batch_gradient(Gradient& g) {
  g.set("x", g.call("batch_to_space", {{"x", g.dy().value()},
                                       {"block_shape", g.in("block_shape").value()},
                                       {"crops", g.in("paddings").value()}}));
}

}  // namespace

OpDef define_space_to_batch() {
  return OpBuilder("space_to_batch",
                   "Pads height and width with zeros and moves the position inside each block to the batch axis.")
      .type_var("T", kF16F32)
      .in("x", "T")
      .constant("block_shape", kI32)
      .constant("paddings", kI32)
      .infer(infer_space_to_batch)
      .reference(space_to_batch_reference)
      .note("The position in the block becomes the slower part of the batch. Padding is zero.", "tf.space_to_batch")
      .gradient(space_to_batch_gradient)
      .build();
}

}  // namespace moka::ops
