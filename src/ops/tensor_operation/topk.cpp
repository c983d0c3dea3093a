// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/sorting.h"

namespace moka::ops {

namespace {

constexpr int64_t kMostShortIndices = 1 << 16;

Result<std::vector<Type>> infer_topk(const OpCall& call, Opset since) {
  const Type& x = call.type("x");
  const int64_t k = MOKA_TRY(call.integer("k"));
  MOKA_TRY(call.flag("ascending"));
  const bool both = since < Opset::ios16 || MOKA_TRY(call.flag("return_indices"));
  DType index = DType::int32;
  if (since >= Opset::ios17 && MOKA_TRY(call.text("output_indices_dtype")) == "uint16") index = DType::uint16;
  if (k < -1) return call.error("k", "a count, or -1 for all", cat(k));
  std::vector<Type> out(both ? 2 : 1, x);
  if (!x.is_ranked()) {
    if (both) out[1] = Type::unranked(index);
    return out;
  }
  const int axis = MOKA_TRY(axis_of(call, "axis", x.rank()));
  const int64_t dim = x.shape()[axis];
  if (dim >= 0 && k > dim) return call.error("k", cat("at most ", dim, ", the size of axis ", axis), cat(k));
  if (index == DType::uint16 && dim > kMostShortIndices) {
    return call.error("output_indices_dtype", cat("int32 for axis ", axis, " of size ", dim), "uint16");
  }
  Shape s = x.shape();
  if (k >= 0) s[axis] = k;
  out[0] = Type::tensor(x.dtype(), s);
  if (both) out[1] = Type::tensor(index, s);
  return out;
}

Status topk_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const int axis = MOKA_TRY(axis_of(call, "axis", x.shape.rank()));
  const bool ascending = MOKA_TRY(call.flag("ascending"));
  for_each_sorted(x, axis, out[0].shape[axis], ascending, [&](int64_t place, int64_t source, int64_t index) {
    copy_element(out[0], place, x, source);
    if (out.size() > 1) store_i64(out[1], place, index);
  });
  return {};
}

void topk_gradient(Gradient& g) {
  const int rank = g.x().rank(), axis = static_cast<int>((g.integer("axis") + rank) % rank);
  Term indices = g.y();
  if (g.op().output_count() > 1)
    indices = g.y(1);
  else
    indices = g.call_all("topk",
                         {{"x", g.x().value()},
                          {"k", static_cast<int>(g.integer("k"))},
                          {"axis", axis},
                          {"ascending", g.flag("ascending")},
                          {"sort", g.flag("sort")}},
                         2)[1];
  g.set("x", g.call("scatter_along_axis", {{"data", g.fill(g.x().shape(), 0).value()},
                                           {"indices", g.cast(indices, DType::int32).value()},
                                           {"updates", g.dy().value()},
                                           {"axis", axis},
                                           {"mode", "add"}}));
}

}  // namespace

OpDef define_topk() {
  return OpBuilder("topk",
                   "The k largest or smallest elements along an axis, best first, and their indices. Of equal "
                   "elements the one with the lower index comes first.")
      .type_var("T", kNumbers15)
      .in("x", "T")
      .constant("k", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 1))
      .constant("axis", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, -1))
      .constant("ascending", kBool)
      .or_else(Tensor::boolean(false))
      .infer([](const OpCall& c) { return infer_topk(c, Opset::ios15); })
      .reference(topk_reference)
      .at(Opset::ios16,
          [](OpVersion& v) {
            add_constant(v, "sort", kBool, Tensor::boolean(true));
            add_constant(v, "return_indices", kBool, Tensor::boolean(true));
            v.infer = [](const OpCall& c) { return infer_topk(c, Opset::ios16); };
          })
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.set_domain("T", kNumbers17);
            retype(v, "k", "K", kSizes17);
            add_constant(v, "output_indices_dtype", kString, Tensor::text("int32"));
            v.edit("output_indices_dtype").allowed = {"int32", "uint16"};
            v.infer = [](const OpCall& c) { return infer_topk(c, Opset::ios17); };
          })
      .note(
          "In both directions, of equal elements the one with the lower index comes first, and NaN comes last.",
          "coremltools' value inference, numpy.argsort of x or -x, puts NaN last; the order of equal elements is open "
          "there and in torch.topk, and is the stable one here")
      .note("sort = false gives the same order. k = -1 means all.", "coremltools' definition")
      .note("output_indices_dtype uint16 is refused for axes above 65536 elements.", "an index would not fit")
      .gradient(topk_gradient)
      .build();
}

}  // namespace moka::ops
