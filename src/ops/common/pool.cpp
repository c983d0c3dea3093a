#include "ops/common/pool.h"

namespace moka::ops {

OpBuilder& pool_params(OpBuilder& builder) {
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

}  // namespace moka::ops
