// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_slice_by_size(const OpCall& call) {
  const Type& x = call.type("x");
  for (std::string_view p : {"begin", "size"}) {
    MOKA_TRY(expect_vector(call, p));
    const int64_t n = length_of(call, p);
    if (x.is_ranked() && n >= 0 && n != x.rank())
      return call.error(p, cat(x.rank(), " entries, the rank of x"), cat(n));
  }
  const TensorView *begin = call.value("begin"), *size = call.value("size");
  if (!x.is_ranked()) return one(x);
  Shape out;
  for (int i = 0; i < x.rank(); i++) {
    const int64_t dim = x.shape()[i];
    const int64_t n = size != nullptr ? load_i64(*size, i) : kAnyDim - 1;
    int64_t b = begin != nullptr ? load_i64(*begin, i) : 0;
    if (size != nullptr && n < -1) return call.error("size", "sizes of at least 0, or -1", cat(n));
    if (begin != nullptr && dim >= 0) {
      if (b < -dim || b > dim)
        return call.error("begin", cat("entries from ", -dim, " to ", dim, " at axis ", i), cat(b));
      if (b < 0) b += dim;
    }
    if (n >= 0) {
      if (dim >= 0 && n > dim - (begin != nullptr ? b : 0)) {
        return call.error("size", cat("at most ", dim - b, " entries from ", b, " on at axis ", i), cat(n));
      }
      out.push_back(n);
    } else if (size != nullptr && begin != nullptr && (dim >= 0 || b == 0)) {
      out.push_back(dim >= 0 ? dim - b : dim);
    } else {
      out.push_back(kAnyDim);
    }
  }
  return tensor_result(call, x.dtype(), out);
}

Status slice_by_size_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &begin = call.in("begin");
  const auto from = x.shape.strides(), to = out[0].shape.strides();
  StridedCopy copy;
  copy.add(out[0].shape, to.data(), from.data());
  int64_t start = 0;
  for (int i = 0; i < x.shape.rank(); i++) {
    int64_t b = load_i64(begin, i);
    if (b < 0) b += x.shape[i];
    if (b < 0 || b > x.shape[i] - out[0].shape[i]) {
      return fail(ErrorCode::data, "operation '", call.name(), "' (slice_by_size): ", out[0].shape[i], " entries from ",
                  b, " on do not fit in axis ", i, " of size ", x.shape[i]);
    }
    start += b * from[static_cast<size_t>(i)];
  }
  if (out[0].count() > 0) copy.run(out[0], 0, x, start);
  return {};
}

void slice_by_size_gradient(Gradient& g) {
  const int rank = g.x().rank();
  Tensor axes = g.take(Tensor::zeros(DType::int32, {rank})), sizes = g.take(Tensor::zeros(DType::int32, {rank}));
  for (int i = 0; i < rank; i++) {
    store_i64(axes.view(), i, g.x().shape()[i]);
    store_i64(sizes.view(), i, g.y().shape()[i]);
  }
  const Term begin = g.cast(g.in("begin"), DType::int32);
  const Term is_from_end = g.call("less", {{"x", begin.value()}, {"y", Tensor::scalar_i64(DType::int32, 0)}});
  const Term from_end = g.call("add", {{"x", begin.value()}, {"y", std::move(axes)}});
  const Term from = g.call("select", {{"cond", is_from_end.value()}, {"a", from_end.value()}, {"b", begin.value()}});
  const Term to = g.call("add", {{"x", from.value()}, {"y", std::move(sizes)}});
  g.set("x", g.call("slice_update", {{"x", g.fill(g.x().shape(), 0).value()},
                                     {"update", g.dy().value()},
                                     {"begin", from.value()},
                                     {"end", to.value()}}));
}

}  // namespace

OpDef define_slice_by_size() {
  return OpBuilder("slice_by_size",
                   "The block of the given size from the given start on. Size -1 means all that follows.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .in("begin", kI32)
      .in("size", kI32)
      .infer(infer_slice_by_size)
      .reference(slice_by_size_reference)
      .traits(Trait::moves_data_only)
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.set_domain("T", kPlain17);
            retype(v, "begin", "U", kSizes17);
            retype(v, "size", "U", kSizes17);
          })
      .note("Size -1 means all from begin on. begin may be negative. A block that does not fit is an error.",
            "coremltools' definition")
      .gradient(slice_by_size_gradient)
      .build();
}

}  // namespace moka::ops
