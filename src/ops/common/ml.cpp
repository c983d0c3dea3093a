// SPDX-License-Identifier: Apache-2.0
#include "ops/common/ml.h"

#include "base/whole.h"

namespace moka::ops::ml {

OpBuilder define(std::string name, std::string doc) { return OpBuilder(std::move(name), std::move(doc), Opset::ios13); }

Result<bool> has_rows(const OpCall& call) {
  return call.version().param_index("rows") < 0 ? Result<bool>(false) : call.flag("rows");
}

Result<Rows> rows_of(const OpCall& call, const TensorView& x) {
  if (!MOKA_TRY(has_rows(call))) return Rows{1, x.count()};
  const int64_t n = x.shape[0];
  return Rows{n, n == 0 ? 0 : x.count() / n};
}

Result<Type> row_type(const OpCall& call, std::string_view param) {
  const Type& t = call.type(param);
  if (!MOKA_TRY(has_rows(call)) || !t.is_tensor() || !t.is_ranked()) return t;
  if (t.rank() == 0) return call.error(param, "an axis of rows", cat(t));
  return Type::tensor(t.dtype(), Shape(t.shape().dims().subspan(1)));
}

Result<Type> vectors_of(const OpCall& call, DType t, int64_t n) {
  if (!MOKA_TRY(has_rows(call))) return vector_of(t, n);
  const Type& x = call.type("x");
  return Type::tensor(t, Shape{x.is_ranked() && x.rank() > 0 ? x.shape()[0] : kAnyDim, n});
}

int64_t count_of(const Type& t) {
  if (!t.is_tensor() || !t.is_ranked() || !t.shape().is_concrete()) return -1;
  auto n = t.shape().checked_count();
  return n.ok() ? *n : -1;
}

Type dict_of(bool string_keys) {
  return Type::dict(Type::scalar(string_keys ? DType::string : DType::int64), Type::scalar(DType::fp64));
}

Result<int64_t> vector_length(const OpCall& call, std::string_view param) {
  const TensorView* v = call.value(param);
  if (v == nullptr) return call.error(param, "a constant", "an unknown value");
  if (v->shape.rank() != 1) return call.error(param, "a vector", cat(v->shape));
  return v->count();
}

Status check_length(const OpCall& call, std::string_view param, int64_t expected) {
  int64_t n = MOKA_TRY(vector_length(call, param));
  if (n != expected) return call.error(param, cat(expected, " elements"), cat(n));
  return {};
}

Status check_count(const OpCall& call, std::string_view param, int64_t expected) {
  int64_t n = count_of(MOKA_TRY(row_type(call, param)));
  if (n >= 0 && n != expected) return call.error(param, cat(expected, " elements"), cat(n));
  return {};
}

int64_t find_sorted(const TensorView& keys, const TensorView& x, int64_t i) {
  if (keys.dtype == DType::string)
    return x.dtype == DType::string ? find_sorted(span_of<std::string>(keys), x.as<std::string>()[i]) : -1;
  if (x.dtype == DType::string || (is_float(x.dtype) && !is_int64(load_f64(x, i)))) return -1;
  return find_sorted(span_of<int64_t>(keys), load_i64(x, i));
}

Status check_sorted(const OpCall& call, std::string_view param) {
  MOKA_TRY(vector_length(call, param));
  const TensorView& v = *call.value(param);
  bool ok;
  if (v.dtype == DType::string) {
    auto s = span_of<std::string>(v);
    ok = std::is_sorted(s.begin(), s.end());
  } else {
    auto s = span_of<int64_t>(v);
    ok = std::is_sorted(s.begin(), s.end());
  }
  if (!ok) return call.error(param, "ascending keys", "keys out of order");
  return {};
}

void clear(Dict& dict, bool string_keys) {
  dict.string_keys = string_keys;
  dict.text_keys.clear();
  dict.int_keys.clear();
  dict.values.clear();
}

void append(Dict& dict, const TensorView& keys, int64_t i, double value) {
  if (keys.dtype == DType::string)
    dict.text_keys.push_back(keys.as<std::string>()[i]);
  else
    dict.int_keys.push_back(load_i64(keys, i));
  dict.values.push_back(value);
}

}  // namespace moka::ops::ml
