// SPDX-License-Identifier: Apache-2.0
#include "ops/common/normalization.h"

#include "ops/common/common.h"

namespace moka::ops {

ir::OpBuilder& finish_norm(ir::OpBuilder& b, ir::InferFn infer, ir::ReferenceFn reference) {
  return b.constant("gamma", "T")
      .optional()
      .constant("beta", "T")
      .optional()
      .constant("epsilon", "T")
      .or_else(ir::Tensor::scalar(ir::DType::fp32, 1e-5))
      .infer(std::move(infer))
      .reference(std::move(reference));
}

}  // namespace moka::ops
