// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_cumsum(const OpCall& call) {
  const Type& x = call.type("x");
  if (x.is_ranked()) MOKA_TRY(axis_of(call, "axis", x.rank()));
  MOKA_TRY(call.flag("exclusive"));
  MOKA_TRY(call.flag("reverse"));
  return one(x);
}

template <class Sum, class Load, class Store>
void sum_along(const Shape& s, int axis, bool exclusive, bool reverse, Load load, Store store) {
  const int64_t outer = s.count(0, axis), n = s[axis], inner = s.count(axis + 1, s.rank());
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < inner; i++) {
      Sum sum = 0;
      for (int64_t k = 0; k < n; k++) {
        const int64_t at = (o * n + (reverse ? n - 1 - k : k)) * inner + i;
        const Sum v = load(at);
        if (exclusive) store(at, sum);
        sum += v;
        if (!exclusive) store(at, sum);
      }
    }
  }
}

Status cumsum_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &y = out[0];
  const int axis = MOKA_TRY(axis_of(call, "axis", x.shape.rank()));
  const bool exclusive = MOKA_TRY(call.flag("exclusive")), reverse = MOKA_TRY(call.flag("reverse"));
  if (is_float(x.dtype)) {
    sum_along<double>(
        x.shape, axis, exclusive, reverse, [&](int64_t i) { return load_f64(x, i); },
        [&](int64_t i, double v) { store_f64(y, i, v); });
  } else {
    sum_along<uint64_t>(
        x.shape, axis, exclusive, reverse, [&](int64_t i) { return static_cast<uint64_t>(load_i64(x, i)); },
        [&](int64_t i, uint64_t v) { store_i64(y, i, static_cast<int64_t>(v)); });
  }
  return {};
}

void cumsum_gradient(Gradient& g) {
  g.set("x", g.call("cumsum", {{"x", g.dy().value()},
                               {"axis", static_cast<int>(g.integer("axis"))},
                               {"exclusive", g.flag("exclusive")},
                               {"reverse", !g.flag("reverse")}}));
}

}  // namespace

OpDef define_cumsum() {
  return OpBuilder("cumsum", "Running sums along an axis, from either end, with or without the element itself.")
      .type_var("T", kNumbers15)
      .in("x", "T")
      .constant("axis", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 0))
      .constant("exclusive", kBool)
      .or_else(Tensor::boolean(false))
      .constant("reverse", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_cumsum)
      .reference(cumsum_reference)
      .note(
          "exclusive begins with 0 and leaves the last element out. reverse runs from the end. Floats are summed in "
          "double and rounded, integers wrap.",
          "tf.cumsum; numpy.cumsum")
      .gradient(cumsum_gradient)
      .build();
}

}  // namespace moka::ops
