// SPDX-License-Identifier: Apache-2.0
#include "ops/common/unary.h"

#include <vector>

namespace moka::ops {

Result<double> scalar_param(const OpCall& call, std::string_view param) {
  double v = MOKA_TRY(call.number(param));
  if (!call.has(param) && call.type("x").dtype() == DType::fp16) v = static_cast<double>(static_cast<float>(half(v)));
  return v;
}

InferFn same_as_x_with_scalars(std::initializer_list<const char*> params) {
  return [params = std::vector<const char*>(params)](const OpCall& call) -> Result<std::vector<Type>> {
    for (const char* p : params) MOKA_TRY(call.number(p));
    return one(call.type("x"));
  };
}

void own_float_type(OpVersion& v, std::initializer_list<const char*> params) {
  v.set_domain("U", kF16F32);
  for (const char* p : params) v.edit(p).type_var = std::string("U");
}

}  // namespace moka::ops
