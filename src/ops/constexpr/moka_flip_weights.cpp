// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_flip_weights(const OpCall& call) {
  const Type& w = call.type("weight");
  if (!w.is_concrete() || w.rank() < 3) return call.error("weight", "a known shape of at least 3 dimensions", cat(w));
  const int64_t groups = MOKA_TRY(call.integer("groups"));
  if (groups < 1 || w.shape()[0] % groups != 0)
    return call.error("groups", cat("a divisor of ", w.shape()[0]), cat(groups));
  Shape out{MOKA_TRY(multiply_dims(w.shape()[1], groups)), w.shape()[0] / groups};
  for (int i = 2; i < w.rank(); i++) out.push_back(w.shape()[i]);
  return one(Type::tensor(w.dtype(), out));
}

/// Swaps the rows and the columns of a group, and reverses the taps. kTaps: their number, or 0.
template <int64_t kTaps, class T>
void flip(const T* from, int64_t rows, int64_t columns, int64_t taps, T* to) {
  if (kTaps > 0) taps = kTaps;
  constexpr int64_t kRows = 16;  // whose lines stay in the cache
  for (int64_t first = 0; first < rows; first += kRows)
    for (int64_t column = 0; column < columns; column++)
      for (int64_t row = first; row < std::min(rows, first + kRows); row++) {
        const T* window = from + (row * columns + column) * taps;
        T* flipped = to + (column * rows + row) * taps;
        for (int64_t t = 0; t < taps; t++) flipped[t] = window[taps - 1 - t];
      }
}

template <class T>
void flip_groups(const TensorView& w, int64_t groups, const TensorView& y) {
  const int64_t rows = w.shape[0] / groups, columns = w.shape[1], taps = w.shape.count(2, w.shape.rank());
  const auto run = taps == 1 ? flip<1, T> : taps == 9 ? flip<9, T> : flip<0, T>;
  for (int64_t g = 0; g < groups; g++)
    run(w.as<T>() + g * rows * columns * taps, rows, columns, taps, y.as<T>() + g * rows * columns * taps);
}

Status flip_weights_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& w = call.in("weight");
  const int64_t groups = MOKA_TRY(call.integer("groups"));
  switch (bits(w.dtype)) {
    case 16: flip_groups<uint16_t>(w, groups, out[0]); break;
    case 32: flip_groups<uint32_t>(w, groups, out[0]); break;
    default: flip_groups<uint64_t>(w, groups, out[0]);
  }
  return {};
}

void flip_weights_gradient(Gradient& g) {
  g.set("weight",
        g.call("moka_flip_weights", {{"weight", g.dy().value()}, {"groups", static_cast<int>(g.integer("groups"))}}));
}

}  // namespace

OpDef define_moka_flip_weights() {
  return OpBuilder("moka_flip_weights",
                   "The weights [out channels, channels / groups, kernel...] of a convolution with stride 1, as those "
                   "of the convolution that computes the gradient of its x: [channels, out channels / groups, "
                   "kernel...], with the kernel reversed along each axis.",
                   Opset::ios13)
      .type_var("T", kF16F32 | only(DType::fp64))
      .in("weight", "T")
      .constant("groups", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .infer(infer_flip_weights)
      .reference(flip_weights_reference)
      .traits(Trait::moves_data_only)
      .note("Applied twice, it gives the same weights.", "torch.nn.functional.conv_transpose2d")
      .gradient(flip_weights_gradient)
      .build();
}

}  // namespace moka::ops
