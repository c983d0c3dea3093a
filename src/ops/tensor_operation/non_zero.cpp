// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

template <class Fn>
void for_each_non_zero(const TensorView& x, Fn fn) {
  const int64_t n = x.count();
  auto scan = [&](const auto* p) {
    for (int64_t i = 0; i < n; i++)
      if (p[i] != 0) fn(i);
  };
  switch (x.dtype) {
    case DType::boolean: return scan(x.as<uint8_t>());
    case DType::int32: return scan(x.as<int32_t>());
    case DType::fp32: return scan(x.as<float>());
    case DType::fp16: {
      const auto* p = x.as<uint16_t>();
      for (int64_t i = 0; i < n; i++)
        if ((p[i] & 0x7fff) != 0) fn(i);
      return;
    }
    default:
      for (int64_t i = 0; i < n; i++)
        if (load_f64(x, i) != 0) fn(i);
  }
}

Result<std::vector<Type>> infer_non_zero(const OpCall& call) {
  const Type& x = call.type("x");
  int64_t found = kAnyDim;
  if (const TensorView* v = call.value("x"); v != nullptr) {
    found = 0;
    for_each_non_zero(*v, [&](int64_t) { found++; });
  }
  return one(Type::tensor(DType::int32, {found, x.is_ranked() ? x.rank() : kAnyDim}));
}

Status non_zero_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &y = out[0];
  const int rank = x.shape.rank();
  const auto strides = x.shape.strides();
  int64_t row = 0;
  const int64_t rows = y.shape[0];
  for_each_non_zero(x, [&](int64_t i) {
    if (row == rows) return;
    for (int k = 0; k < rank; k++) {
      const int64_t step = strides[static_cast<size_t>(k)];
      store_i64(y, row * rank + k, i / step);
      i %= step;
    }
    row++;
  });
  if (row != rows) {
    return fail(ErrorCode::data, "operation '", call.name(), "' (non_zero): ", row,
                " elements are not zero, the plan expected ", rows);
  }
  return {};
}

}  // namespace

OpDef define_non_zero() {
  return OpBuilder("non_zero", "The indices of the elements that are not zero, one row for each, in row-major order.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .infer(infer_non_zero)
      .reference(non_zero_reference)
      .note("NaN is not zero. Indices are in row-major order, one row each. For a scalar, rows have no entries.",
            "coremltools' value inference, numpy.nonzero, transposed")
      .gradient(no_gradient)
      .build();
}

}  // namespace moka::ops
