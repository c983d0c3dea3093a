// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reduction.h"

namespace moka::ops {

namespace {

Shape without(const Shape& x, const Ints& axes, bool keep_dims) {
  unsigned reduced = 0;
  for (int64_t a : axes) reduced |= 1u << a;
  Shape out;
  for (int d = 0; d < x.rank(); d++) {
    const bool gone = (reduced >> d) & 1;
    if (!gone || keep_dims) out.push_back(gone ? 1 : x[d]);
  }
  return out;
}

/// Checks that the reduced axes are not empty if the result has elements. Unknown sizes pass.
Status check_elements(const OpCall& call, const Shape& x, const Ints& axes, const Shape& out) {
  bool empty = false;
  for (int64_t a : axes) empty = empty || x[static_cast<int>(a)] == 0;
  for (int64_t d : out) {
    if (d == 0) return {};
  }
  if (empty) return call.error("x", "elements along the reduced axes", cat("shape ", x));
  return {};
}

}  // namespace

Result<Ints> reduced_axes(const OpCall& call, int rank) {
  if (call.has("axes")) return axes_of(call, "axes", rank);
  Ints all;
  for (int i = 0; i < rank; i++) all.push_back(i);
  return all;
}

InferFn reduced_type(bool needs_elements) {
  return [needs_elements](const OpCall& call) -> Result<std::vector<Type>> {
    const Type& x = call.type("x");
    const bool keep_dims = MOKA_TRY(call.flag("keep_dims"));
    if (!x.is_ranked())
      return one(!keep_dims && !call.has("axes") ? Type::scalar(x.dtype()) : Type::unranked(x.dtype()));
    const Ints axes = MOKA_TRY(reduced_axes(call, x.rank()));
    const Shape out = without(x.shape(), axes, keep_dims);
    if (needs_elements) MOKA_TRY(check_elements(call, x.shape(), axes, out));
    return one(Type::tensor(x.dtype(), out));
  };
}

InferFn arg_type(bool has_output_dtype) {
  return [has_output_dtype](const OpCall& call) -> Result<std::vector<Type>> {
    const Type& x = call.type("x");
    DType to = DType::int32;
    if (has_output_dtype) {
      const std::string_view name = MOKA_TRY(call.text("output_dtype"));
      to = dtype_from_string(name);
      if (to != DType::int32 && to != DType::uint16) return call.error("output_dtype", "int32 or uint16", name);
    }
    const bool keep_dims = MOKA_TRY(call.flag("keep_dims"));
    if (!x.is_ranked()) return one(Type::unranked(to));
    const Ints axes{MOKA_TRY(axis_of(call, "axis", x.rank()))};
    const Shape out = without(x.shape(), axes, keep_dims);
    MOKA_TRY(check_elements(call, x.shape(), axes, out));
    return one(Type::tensor(to, out));
  };
}

void add_output_dtype(OpVersion& v) {
  ParamDef& p = v.params.emplace_back();
  p.name = "output_dtype";
  p.dtypes = kString;
  p.constant = true;
  p.allowed = {"int32", "uint16"};
  p.set_default(Tensor::text("int32"));
  v.infer = arg_type(true);
}

}  // namespace moka::ops
