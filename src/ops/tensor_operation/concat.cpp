// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

/// Scalars are joined as vectors of one element.
Shape at_least_1d(const Shape& s) { return s.rank() == 0 ? Shape{1} : s; }

Result<std::vector<Type>> infer_concat(const OpCall& call) {
  const auto values = call.args("values");
  const bool interleave = MOKA_TRY(call.flag("interleave"));
  if (values.empty()) return call.error("values", "at least one tensor", "none");
  const DType dtype = values[0].type->is_tensor() ? values[0].type->dtype() : DType::none;
  int rank = -1;
  bool all_ranked = true;
  for (const Arg& a : values) {
    if (!a.type->is_tensor() || a.type->dtype() != dtype) {
      return call.error("values", "tensors of one element type", cat(*values[0].type, " and ", *a.type));
    }
    all_ranked = all_ranked && a.type->is_ranked();
    if (!a.type->is_ranked()) continue;
    if (rank >= 0 && a.type->rank() != rank)
      return call.error("values", "equal ranks", cat(rank, " and ", a.type->rank()));
    rank = a.type->rank();
  }
  if (!all_ranked) return one(Type::unranked(dtype));
  Shape out = at_least_1d(values[0].type->shape());
  const int axis = MOKA_TRY(axis_of(call, "axis", out.rank()));
  int64_t total = 0;
  for (const Arg& a : values) {
    const Shape s = at_least_1d(a.type->shape());
    for (int i = 0; i < out.rank(); i++) {
      if (i == axis && !interleave) continue;
      if (!unify_dim(out[i], s[i], out[i])) {
        return call.error("values", cat("equal sizes at axis ", i), cat(out[i], " and ", s[i]));
      }
    }
    total = MOKA_TRY(add_dims(total, s[axis]));
  }
  out[axis] = values.size() == 1 ? out[axis]
              : interleave       ? MOKA_TRY(multiply_dims(out[axis], static_cast<int64_t>(values.size())))
                                 : total;
  return tensor_result(call, dtype, out);
}

Status concat_reference(const OpCall& call, std::span<const TensorView> out) {
  const auto values = call.args("values");
  const Shape& o = out[0].shape;
  const int axis = MOKA_TRY(axis_of(call, "axis", o.rank()));
  const bool interleave = MOKA_TRY(call.flag("interleave"));
  const int64_t outer = o.count(0, axis), inner = o.count(axis + 1, o.rank());
  const auto n = static_cast<int64_t>(values.size());
  int64_t at = 0;
  for (const Arg& a : values) {
    const int64_t size = at_least_1d(a.value->shape)[axis];
    StridedCopy copy;
    copy.add(outer, o[axis] * inner, size * inner);
    copy.add(size, interleave ? n * inner : inner, inner);
    copy.add(inner, 1, 1);
    copy.run(out[0], at, *a.value, 0);
    at += interleave ? inner : size * inner;
  }
  return {};
}

void concat_gradient(Gradient& g) {
  const auto values = g.op().inputs("values");
  const int rank = g.y().rank(), axis = static_cast<int>((g.integer("axis") + rank) % std::max(rank, 1));
  const bool interleave = g.flag("interleave");
  const int64_t count = static_cast<int64_t>(values.size());
  int64_t at = 0;
  for (size_t i = 0; i < values.size(); i++) {
    const int64_t size = values[i]->type.rank() == 0 ? 1 : values[i]->type.shape()[axis];
    Ints begin, end, stride;
    for (int k = 0; k < rank; k++) {
      begin.push_back(k != axis ? 0 : interleave ? static_cast<int64_t>(i) : at);
      end.push_back(k != axis ? g.y().shape()[k] : interleave ? g.y().shape()[k] : at + size);
      stride.push_back(k == axis && interleave ? count : 1);
    }
    at += size;
    if (g.wants("values", i))
      g.set("values",
            g.reshape(
                g.call("slice_by_index", {{"x", g.dy().value()}, {"begin", begin}, {"end", end}, {"stride", stride}}),
                values[i]->type.shape()),
            i);
  }
}

}  // namespace

OpDef define_concat() {
  return OpBuilder("concat", "Joins tensors along an axis, one after the other or interleaved.")
      .variadic_any("values")
      .constant("axis", kI32)
      .constant("interleave", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_concat)
      .reference(concat_reference)
      .traits(Trait::moves_data_only)
      .note(
          "Scalars are joined like vectors of one element. interleave takes one element of each tensor in turn and "
          "needs equal sizes.",
          "programs that coremltools writes for shapes; its definition")
      .gradient(concat_gradient)
      .build();
}

}  // namespace moka::ops
