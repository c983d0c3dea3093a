// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_stack(const OpCall& call) {
  const auto values = call.args("values");
  if (values.empty()) return call.error("values", "at least one tensor", "none");
  Shape out;
  bool ranked = false;
  for (const Arg& a : values) {
    if (!a.type->is_tensor() || a.type->dtype() != values[0].type->dtype()) {
      return call.error("values", "tensors of one element type", cat(*values[0].type, " and ", *a.type));
    }
    if (!a.type->is_ranked()) continue;
    if (!ranked) out = a.type->shape();
    ranked = true;
    if (!is_compatible(out, a.type->shape()))
      return call.error("values", "equal shapes", cat(out, " and ", a.type->shape()));
    for (int i = 0; i < out.rank(); i++) unify_dim(out[i], a.type->shape()[i], out[i]);
  }
  if (!ranked) return one(Type::unranked(values[0].type->dtype()));
  if (out.rank() == kMaxRank) return call.error("values", cat("rank below ", kMaxRank), cat("rank ", kMaxRank));
  out.insert(MOKA_TRY(new_axis_of(call, "axis", out.rank())), static_cast<int64_t>(values.size()));
  return tensor_result(call, values[0].type->dtype(), out);
}

Status stack_reference(const OpCall& call, std::span<const TensorView> out) {
  const auto values = call.args("values");
  const Shape& s = values[0].value->shape;
  const int axis = MOKA_TRY(new_axis_of(call, "axis", s.rank()));
  const int64_t outer = s.count(0, axis), inner = s.count(axis, s.rank()), n = static_cast<int64_t>(values.size());
  for (int64_t k = 0; k < n; k++) {
    StridedCopy copy;
    copy.add(outer, n * inner, inner);
    copy.add(inner, 1, 1);
    copy.run(out[0], k * inner, *values[static_cast<size_t>(k)].value, 0);
  }
  return {};
}

void stack_gradient(Gradient& g) {
  const int rank = g.y().rank(), axis = static_cast<int>((g.integer("axis") + rank) % rank);
  const auto values = g.op().inputs("values");
  for (size_t i = 0; i < values.size(); i++) {
    if (!g.wants("values", i)) continue;
    Ints begin, end;
    for (int k = 0; k < rank; k++) {
      begin.push_back(k == axis ? static_cast<int64_t>(i) : 0);
      end.push_back(k == axis ? static_cast<int64_t>(i) + 1 : g.y().shape()[k]);
    }
    g.set("values",
          g.reshape(g.call("slice_by_index", {{"x", g.dy().value()}, {"begin", begin}, {"end", end}}),
                    values[i]->type.shape()),
          i);
  }
}

}  // namespace

OpDef define_stack() {
  return OpBuilder("stack", "Joins tensors of equal shape along a new axis.")
      .variadic_any("values")
      .constant("axis", kI32)
      .infer(infer_stack)
      .reference(stack_reference)
      .traits(Trait::moves_data_only)
      .gradient(stack_gradient)
      .build();
}

}  // namespace moka::ops
