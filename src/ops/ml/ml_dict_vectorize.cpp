// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "ops/common/ml.h"

namespace moka::ops {
namespace {

/// The position of key `i` of `x` in `keys`; -1: absent. The keys may have another type, because some converters
/// describe dictionaries wrongly. Integers then compare by their decimal text.
int64_t position_of(const Dict& x, size_t i, const TensorView& keys) {
  if (keys.dtype == DType::string) {
    const auto table = ml::span_of<std::string>(keys);
    return ml::find_sorted(table, x.string_keys ? x.text_keys[i] : std::to_string(x.int_keys[i]));
  }
  int64_t key = 0;
  if (!x.string_keys) {
    key = x.int_keys[i];
  } else {
    const std::string& text = x.text_keys[i];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), key);
    if (error != std::errc{} || end != text.data() + text.size()) return -1;
  }
  return ml::find_sorted(ml::span_of<int64_t>(keys), key);
}

Result<std::vector<Type>> infer_ml_dict_vectorize(const OpCall& call) {
  int64_t n = MOKA_TRY(ml::vector_length(call, "keys"));
  MOKA_TRY(ml::check_sorted(call, "keys"));
  MOKA_TRY(ml::check_length(call, "positions", n));
  for (int64_t p : ml::span_of<int64_t>(*call.value("positions")))
    if (p < 0 || p >= n) return call.error("positions", cat("0 to ", n - 1), cat(p));
  return one(MOKA_TRY(call.flag("dense")) ? ml::vector_of(DType::fp64, n) : ml::dict_of(false));
}

Status ml_dict_vectorize_reference(const OpCall& call, std::span<const TensorView> out) {
  const Dict& x = call.in("x").dict();
  const TensorView& keys = call.in("keys");
  const int64_t* positions = call.in("positions").as<int64_t>();
  bool dense = MOKA_TRY(call.flag("dense"));
  if (dense)
    std::fill_n(out[0].as<double>(), keys.count(), 0.0);
  else
    ml::clear(out[0].dict(), false);
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t at = position_of(x, i, keys);
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
             "A vector from a dictionary: the value of keys[i] goes to element positions[i]. Unknown keys are left "
             "out. Integer keys match their decimal text. Sparse (a dictionary by position) unless `dense`.")
      .in_kind("x", ParamKind::dict)
      .constant("keys", ml::kKeys)
      .constant("positions", ml::kI64)
      .constant("dense", kBool)
      .infer(infer_ml_dict_vectorize)
      .reference(ml_dict_vectorize_reference)
      .build();
}

}  // namespace moka::ops
