// SPDX-License-Identifier: Apache-2.0
#include "ops/common/binary.h"

namespace moka::ops {

InferFn broadcast_xy(DType result) {
  return [result](const OpCall& call) -> Result<std::vector<Type>> {
    const Type &x = call.type("x"), &y = call.type("y");
    if (x.dtype() != y.dtype()) return call.error("y", cat("the type of x, ", x.dtype()), cat(y.dtype()));
    if (x.dtype() == DType::string) return call.error("x", "numbers or booleans", "strings");
    const DType t = result == DType::none ? x.dtype() : result;
    if (!x.is_ranked() || !y.is_ranked()) return one(Type::unranked(t));
    Result<Shape> shape = broadcast(x.shape(), y.shape());
    if (!shape) return call.error("y", cat("a shape that broadcasts with that of x, ", x.shape()), cat(y.shape()));
    return one(Type::tensor(t, *shape));
  };
}

}  // namespace moka::ops
