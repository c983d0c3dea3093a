// SPDX-License-Identifier: Apache-2.0
#include "ops/common/blockwise.h"

namespace moka::ops {

Status check_blockwise(const OpCall& call, const Shape& data, DType type) {
  const Type& scale = call.type("scale");
  if (data.rank() < 1) return call.error("weights of rank 1 or more are needed, got a scalar");
  if (!scale.is_concrete()) return call.error("scale", "a constant of known shape", cat(scale));
  MOKA_TRY(check_blocks(call, "scale", data, scale.shape()));
  if (!call.has("offset")) return {};
  const Type& offset = call.type("offset");
  if (!offset.is_concrete() || !(offset.shape() == scale.shape())) {
    return call.error("offset", cat("the shape of scale, ", scale.shape()), cat(offset));
  }
  if (!is_float(offset.dtype()) && offset.dtype() != type) {
    return call.error("offset", cat("a float type, or ", type, " like the data"), cat(offset.dtype()));
  }
  return {};
}

}  // namespace moka::ops
