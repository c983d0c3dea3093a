// SPDX-License-Identifier: Apache-2.0
#include "ops/common/pool.h"

namespace moka::ops {

OpBuilder& pool_params(OpBuilder& builder) {
  builder.note(
      "same gives ceil(in / stride) elements. An odd element of padding goes to the end, with same_lower to the "
      "beginning.",
      "coremltools' spatial_dimensions_out_shape; TensorFlow's SAME");
  builder.note(
      "pad is ignored unless pad_type is custom. ceil_mode needs equal padding on both sides, at most two spatial "
      "dimensions and a pad_type other than same.",
      "coremltools' definition and checks");
  builder.note(
      "Where there is padding, ceil_mode leaves out a last window that would begin after the input and the "
      "padding before it.",
      "torch.nn.MaxPool2d and AvgPool2d, to whose ceil_mode the definition points");
  return builder.type_var("T", kF16F32)
      .in("x", "T")
      .constant("kernel_sizes", kI32)
      .constant("strides", kI32)
      .optional()
      .constant("pad_type", kString)
      .one_of({"valid", "same", "same_lower", "custom"})
      .constant("pad", kI32)
      .optional()
      .constant("ceil_mode", kBool)
      .or_else(Tensor::boolean(false));
}

InferFn infer_pool(int max_rank) {
  return [max_rank](const OpCall& call) -> Result<std::vector<Type>> {
    const DType dtype = call.dtype("x");
    if (any_unranked(call, {"x"})) return one(Type::unranked(dtype));
    const Window w = MOKA_TRY(pool_window(call, max_rank));
    Shape out{call.shape("x")[0], call.shape("x")[1]};
    for (int64_t d : w.out) out.push_back(d);
    return one(Type::tensor(dtype, out));
  };
}

InferFn infer_pool_gradient(int max_rank) {
  return [pool = infer_pool(max_rank)](const OpCall& call) -> Result<std::vector<Type>> {
    const auto result = MOKA_TRY(pool(call));
    if (!is_compatible(call.type("dy"), result[0])) return call.error("dy", cat(result[0]), cat(call.type("dy")));
    return one(call.type("x"));
  };
}

}  // namespace moka::ops
