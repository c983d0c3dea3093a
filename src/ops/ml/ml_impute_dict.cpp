// SPDX-License-Identifier: Apache-2.0
#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_impute_dict(const OpCall& call) {
  int64_t n = MOKA_TRY(ml::vector_length(call, "keys"));
  MOKA_TRY(ml::check_sorted(call, "keys"));
  MOKA_TRY(ml::check_length(call, "imputed", n));
  MOKA_TRY(call.number("replaced"));
  if (ml::has_string_keys(call.type("x")) != (call.value("keys")->dtype == DType::string))
    return call.error("x", cat("a dictionary with keys of type ", call.value("keys")->dtype), cat(call.type("x")));
  return one(ml::dict_of(call.value("keys")->dtype == DType::string));
}

Status ml_impute_dict_reference(const OpCall& call, std::span<const TensorView> out) {
  const Dict& x = call.in("x").dict();
  const TensorView& keys = call.in("keys");
  const double* imputed = call.in("imputed").as<double>();
  double replaced = MOKA_TRY(call.number("replaced"));
  if (x.string_keys != (keys.dtype == DType::string))
    return fail(ErrorCode::data, "operation '", call.name(), "': expected a dictionary with keys of type ", keys.dtype);
  Dict y = x;
  std::vector<bool> present(static_cast<size_t>(keys.count()));
  for (size_t i = 0; i < y.size(); ++i) {
    int64_t at = y.string_keys ? ml::find_sorted(ml::span_of<std::string>(keys), y.text_keys[i])
                               : ml::find_sorted(ml::span_of<int64_t>(keys), y.int_keys[i]);
    if (at < 0) continue;
    present[static_cast<size_t>(at)] = true;
    double v = y.values[i];
    if (v == replaced || (v != v && replaced != replaced)) y.values[i] = imputed[at];
  }
  for (int64_t k = 0; k < keys.count(); ++k)
    if (!present[static_cast<size_t>(k)]) ml::append(y, keys, k, imputed[k]);
  out[0].dict() = std::move(y);
  return {};
}

}  // namespace

OpDef define_ml_impute_dict() {
  return ml::define(
             "ml_impute_dict",
             "The dictionary with the imputed value for each of `keys` that is absent or has the value `replaced` "
             "(NaN equals NaN).")
      .in_kind("x", ParamKind::dict)
      .constant("keys", ml::kKeys)
      .constant("imputed", ml::kF64)
      .constant("replaced", ml::kF64)
      .infer(infer_ml_impute_dict)
      .reference(ml_impute_dict_reference)
      .build();
}

}  // namespace moka::ops
