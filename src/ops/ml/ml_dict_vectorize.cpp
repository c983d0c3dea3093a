#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer(const OpCall& call) {
  int64_t n = MOKA_TRY(ml::vector_length(call, "keys"));
  MOKA_TRY(ml::check_sorted(call, "keys"));
  MOKA_TRY(ml::check_length(call, "positions", n));
  for (int64_t p : ml::span_of<int64_t>(*call.value("positions")))
    if (p < 0 || p >= n) return call.error("positions", cat("0 to ", n - 1), cat(p));
  if (ml::has_string_keys(call.type("x")) != (call.value("keys")->dtype == DType::string))
    return call.error("x", cat("a dictionary with keys of type ", call.value("keys")->dtype), cat(call.type("x")));
  return one(MOKA_TRY(call.flag("dense")) ? ml::vector_of(DType::fp64, n) : ml::dict_of(false));
}

Status reference(const OpCall& call, std::span<const TensorView> out) {
  const Dict& x = call.in("x").dict();
  const TensorView& keys = call.in("keys");
  const int64_t* positions = call.in("positions").as<int64_t>();
  bool dense = MOKA_TRY(call.flag("dense"));
  if (x.string_keys != (keys.dtype == DType::string))
    return fail(ErrorCode::data, "operation '", call.name(), "': expected a dictionary with keys of type ", keys.dtype);
  if (dense)
    std::fill_n(out[0].as<double>(), keys.count(), 0.0);
  else
    ml::clear(out[0].dict(), false);
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t at = x.string_keys ? ml::find_sorted(ml::span_of<std::string>(keys), x.text_keys[i])
                               : ml::find_sorted(ml::span_of<int64_t>(keys), x.int_keys[i]);
    if (at < 0) continue;
    if (dense) {
      out[0].as<double>()[positions[at]] = x.values[i];
    } else {
      out[0].dict().int_keys.push_back(positions[at]);
      out[0].dict().values.push_back(x.values[i]);
    }
  }
  return {};
}

}  // namespace

OpDef define_ml_dict_vectorize() {
  return ml::define(
             "ml_dict_vectorize",
             "A vector from a dictionary: the value of keys[i] goes to element positions[i], unknown keys are left "
             "out. Sparse (a dictionary by position) unless `dense`.")
      .in_kind("x", ParamKind::dict)
      .constant("keys", ml::kKeys)
      .constant("positions", ml::kI64)
      .constant("dense", kBool)
      .infer(infer)
      .reference(reference)
      .build();
}

}  // namespace moka::ops
