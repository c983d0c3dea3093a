// SPDX-License-Identifier: Apache-2.0
#include "ops/common/categories.h"
#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_map(const OpCall& call) {
  int64_t n = MOKA_TRY(ml::vector_length(call, "keys"));
  MOKA_TRY(ml::check_sorted(call, "keys"));
  MOKA_TRY(ml::check_length(call, "values", n));
  if ((call.dtype("x") == DType::string) != (call.value("keys")->dtype == DType::string))
    return call.error("x", cat("a value of type ", call.value("keys")->dtype), cat(call.dtype("x")));
  if (call.has("unknown")) {
    MOKA_TRY(ml::check_length(call, "unknown", 1));
    if (call.value("unknown")->dtype != call.value("values")->dtype)
      return call.error("unknown", cat(call.value("values")->dtype), cat(call.value("unknown")->dtype));
  }
  const Type& x = call.type("x");
  DType t = call.value("values")->dtype;
  return one(x.is_ranked() ? Type::tensor(t, x.shape()) : Type::unranked(t));
}

Status ml_map_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  for (int64_t i = 0; i < x.count(); ++i) {
    int64_t at = ml::find_sorted(call.in("keys"), x, i);
    if (at >= 0) {
      copy_element(out[0], i, call.in("values"), at);
    } else if (call.has("unknown")) {
      copy_element(out[0], i, call.in("unknown"), 0);
    } else {
      return unknown_category(call, "keys", x, i);
    }
  }
  return {};
}

}  // namespace

OpDef define_ml_map() {
  return ml::define("ml_map",
                    "values[i] for each element equal to keys[i], else `unknown`. Without `unknown`, other elements "
                    "are an error.")
      .in("x", kEverything)
      .constant("keys", ml::kKeys)
      .constant("values", ml::kKeys)
      .constant("unknown", ml::kKeys)
      .optional()
      .infer(infer_ml_map)
      .reference(ml_map_reference)
      .build();
}

}  // namespace moka::ops
