// SPDX-License-Identifier: Apache-2.0
#include "ops/common/addend.h"

#include "ops/common/common.h"
#include "ops/common/ranks.h"

namespace moka::ops {

namespace {

InferFn checked(InferFn infer) {
  return [infer = std::move(infer)](const OpCall& call) -> Result<std::vector<Type>> {
    std::vector<Type> types = MOKA_TRY(infer(call));
    if (!call.has_addend()) return types;
    const Type &y = types[0], &addend = call.type("addend");
    bool same = addend.dtype() == y.dtype() && addend.is_ranked() == y.is_ranked();
    if (same && y.is_ranked()) {
      same = addend.rank() == y.rank();
      for (int i = 0; same && i < y.rank(); i++) same = may_equal(addend.shape()[i], y.shape()[i]);
    }
    if (!same) return call.error("addend", cat("the result's type ", y), cat(addend));
    return types;
  };
}

ReferenceFn added(ReferenceFn reference) {
  return [reference = std::move(reference)](const OpCall& call, std::span<const TensorView> out) -> Status {
    MOKA_TRY(reference(call, out));
    if (!call.has_addend()) return {};
    const TensorView& addend = call.in("addend");
    const int64_t n = out[0].count();
    if (out[0].dtype == DType::fp32) {
      for (int64_t i = 0; i < n; i++) out[0].as<float>()[i] += addend.as<float>()[i];
    } else {
      for (int64_t i = 0; i < n; i++) store_f64(out[0], i, load_f64(out[0], i) + load_f64(addend, i));
    }
    return {};
  };
}

}  // namespace

OpDef with_addend(OpDef def) {
  for (OpVersion& v : def.versions) {
    ParamDef& p = v.params.emplace_back();
    p.name = "addend";
    p.dtypes = only(DType::fp32) | only(DType::fp16);
    p.optional = p.internal = true;
    v.infer = checked(std::move(v.infer));
    v.reference = added(std::move(v.reference));
  }
  return def;
}

}  // namespace moka::ops
