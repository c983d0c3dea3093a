// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gradients.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_sliding_windows(const OpCall& call) {
  const Type& x = call.type("x");
  const int64_t size = MOKA_TRY(call.integer("size")), stride = MOKA_TRY(call.integer("stride"));
  if (size < 1) return call.error("size", "at least 1", cat(size));
  if (stride < 1) return call.error("stride", "at least 1", cat(stride));
  if (!x.is_ranked()) return one(x);
  const int axis = MOKA_TRY(axis_of(call, "axis", x.rank()));
  if (x.rank() == kMaxRank) return call.error("x", cat("rank below ", kMaxRank), cat("rank ", x.rank()));
  Shape out = x.shape();
  if (out[axis] >= 0) {
    if (out[axis] < size) return call.error("size", cat("at most ", out[axis], ", the size of axis ", axis), cat(size));
    out[axis] = (out[axis] - size) / stride + 1;
  } else if (size != 1 || stride != 1) {
    out[axis] = kAnyDim;
  }
  out.insert(axis + 1, size);
  return tensor_result(call, x.dtype(), out);
}

Status sliding_windows_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const int axis = MOKA_TRY(axis_of(call, "axis", x.shape.rank()));
  const int64_t stride = MOKA_TRY(call.integer("stride"));
  const auto from = x.shape.strides(), to = out[0].shape.strides();
  StridedCopy copy;
  for (int i = 0; i < out[0].shape.rank(); i++) {
    const int64_t step = from[static_cast<size_t>(i <= axis ? i : i - 1)];
    copy.add(out[0].shape[i], to[static_cast<size_t>(i)], i == axis ? step * stride : step);
  }
  copy.run(out[0], 0, x, 0);
  return {};
}

void sliding_windows_gradient(Gradient& g) {
  const int rank = g.x().rank(), axis = static_cast<int>((g.integer("axis") + rank) % rank);
  const int64_t size = g.integer("size"), stride = g.integer("stride");
  const Tensor from = int32s(g, {g.y().shape()[axis], size}, [&](int64_t i) { return i / size * stride + i % size; });
  g.set("x", g.call("scatter", {{"data", g.fill(g.x().shape(), 0).value()},
                                {"indices", from},
                                {"updates", g.dy().value()},
                                {"axis", axis},
                                {"mode", "add"}}));
}

}  // namespace

OpDef define_sliding_windows() {
  return OpBuilder("sliding_windows",
                   "All windows of `size` entries along an axis, `stride` apart, as a new axis after it.")
      .type_var("T", kNumbers15)
      .in("x", "T")
      .constant("axis", kI32)
      .constant("size", kI32)
      .constant("stride", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .infer(infer_sliding_windows)
      .reference(sliding_windows_reference)
      .traits(Trait::moves_data_only)
      .gradient(sliding_windows_gradient)
      .at(Opset::ios17, [](OpVersion& v) { v.set_domain("T", kPlain17); })
      .note("There are (n - size) / stride + 1 windows, rounded down. The new axis follows the old one.",
            "coremltools' definition; its type inference")
      .build();
}

}  // namespace moka::ops
