// SPDX-License-Identifier: Apache-2.0
#include "ops/common/shapes.h"

#include <limits>

namespace moka::ops {

Status expect_countable(const OpCall& call, const Shape& shape) {
  if (shape.is_concrete())
    MOKA_TRY_IN(shape.checked_count(), cat("operation '", call.name(), "' (", call.version().def->name, ")"));
  return {};
}

Result<std::vector<Type>> tensor_result(const OpCall& call, DType dtype, const Shape& shape) {
  MOKA_TRY(expect_countable(call, shape));
  std::vector<Type> v;
  v.push_back(Type::tensor(dtype, shape));
  return v;
}

Result<int64_t> multiply_dims(int64_t a, int64_t b) {
  if (a == 1) return b;
  if (b == 1) return a;
  if (a == 0 || b == 0) return int64_t{0};
  if (a < 0 || b < 0) return kAnyDim;
  int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r))
    return fail(ErrorCode::unsupported, "a dimension of ", a, " x ", b, " elements");
  return r;
}

Result<int64_t> add_dims(int64_t a, int64_t b) {
  if (a == 0) return b;
  if (b == 0) return a;
  if (a < 0 || b < 0) return kAnyDim;
  int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r))
    return fail(ErrorCode::unsupported, "a dimension of ", a, " + ", b, " elements");
  return r;
}

Result<int64_t> product_of_dims(const Shape& s, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; i++) n = MOKA_TRY(multiply_dims(n, s[i]));
  return n;
}

int64_t divide_dim(int64_t a, int64_t by) {
  if (by == 1) return a;
  return a < 0 ? kAnyDim : a / by;
}

bool unify_dim(int64_t a, int64_t b, int64_t& out) {
  if (a >= 0 && b >= 0 && a != b) return false;
  out = a >= 0 ? a : b >= 0 ? b : a == b ? a : kAnyDim;
  return true;
}

bool is_compatible(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  int64_t d = 0;
  for (int i = 0; i < a.rank(); i++)
    if (!unify_dim(a[i], b[i], d)) return false;
  return true;
}

Result<int64_t> dim_from_value(const OpCall& call, std::string_view param, int64_t v) {
  if (v < 0 || v > std::numeric_limits<int64_t>::max() / 4) return call.error(param, "sizes of at least 0", cat(v));
  return v;
}

Result<int> new_axis_of(const OpCall& call, std::string_view param, int rank) {
  const int64_t axis = MOKA_TRY(call.integer(param));
  if (axis < -rank - 1 || axis > rank)
    return call.error(param, cat("an axis from ", -rank - 1, " to ", rank), cat(axis));
  return static_cast<int>(axis < 0 ? axis + rank + 1 : axis);
}

Status expect_vector(const OpCall& call, std::string_view param) {
  const Type& t = call.type(param);
  if (t.is_ranked() && t.rank() != 1) return call.error(param, "a vector", cat("a value of type ", t));
  return {};
}

int64_t length_of(const OpCall& call, std::string_view param) {
  const Type& t = call.type(param);
  return t.is_ranked() && t.shape()[0] >= 0 ? t.shape()[0] : kAnyDim;
}

void retype(OpVersion& v, std::string_view param, std::string type_var, DTypes dtypes) {
  v.set_domain(type_var, dtypes);
  v.edit(param).type_var = std::move(type_var);
}

void add_constant(OpVersion& v, std::string name, DTypes dtypes, Constant default_value) {
  ParamDef& p = v.params.emplace_back();
  p.name = std::move(name);
  p.dtypes = dtypes;
  p.constant = true;
  p.set_default(std::move(default_value));
}

}  // namespace moka::ops
