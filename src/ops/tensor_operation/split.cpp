// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

constexpr int64_t kMostParts = 1 << 16;

Result<std::vector<Type>> infer_split(const OpCall& call) {
  const Type& x = call.type("x");
  const TensorView* sizes = call.has("split_sizes") ? call.value("split_sizes") : nullptr;
  if (!call.has("num_splits") && !call.has("split_sizes"))
    return call.error("one of num_splits and split_sizes must be given");
  int64_t parts = sizes != nullptr ? sizes->count() : kAnyDim;
  if (call.has("num_splits")) {
    const int64_t n = MOKA_TRY(call.integer("num_splits"));
    if (parts >= 0 && n != parts) return call.error("num_splits", cat(parts, ", the length of split_sizes"), cat(n));
    parts = n;
  }
  if (parts < 1 || parts > kMostParts) return call.error("num_splits", cat("1 to ", kMostParts, " parts"), cat(parts));
  std::vector<Type> out(static_cast<size_t>(parts), x);
  if (!x.is_ranked()) return out;
  const int axis = MOKA_TRY(axis_of(call, "axis", x.rank()));
  const int64_t dim = x.shape()[axis];
  if (!call.has("split_sizes") && dim >= 0 && dim % parts != 0) {
    return call.error("num_splits", cat("a divisor of ", dim, ", the size of axis ", axis), cat(parts));
  }
  int64_t total = 0;
  for (int64_t i = 0; i < parts; i++) {
    int64_t size = divide_dim(dim, parts);
    if (sizes != nullptr) {
      size = MOKA_TRY(dim_from_value(call, "split_sizes", load_i64(*sizes, i)));
      total = MOKA_TRY(add_dims(total, size));
    }
    out[static_cast<size_t>(i)].shape()[axis] = size;
  }
  if (sizes != nullptr && dim >= 0 && total != dim) {
    return call.error("split_sizes", cat("a sum of ", dim, ", the size of axis ", axis), cat(total));
  }
  return out;
}

Status split_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const int axis = MOKA_TRY(axis_of(call, "axis", x.shape.rank()));
  const int64_t outer = x.shape.count(0, axis), inner = x.shape.count(axis + 1, x.shape.rank());
  int64_t at = 0;
  for (const TensorView& part : out) {
    const int64_t run = part.shape[axis] * inner;
    StridedCopy copy;
    copy.add(outer, run, x.shape[axis] * inner);
    copy.add(run, 1, 1);
    copy.run(part, 0, x, at);
    at += run;
  }
  return {};
}

void split_gradient(Gradient& g) {
  std::vector<Value*> parts;
  for (size_t i = 0; i < g.op().output_count(); i++) parts.push_back(g.dy(i).value());
  g.set("x", g.call("concat", {{"values", std::move(parts)}, {"axis", static_cast<int>(g.integer("axis"))}}));
}

}  // namespace

OpDef define_split() {
  return OpBuilder("split", "Cuts x along an axis into equal parts or parts of given sizes.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .constant("num_splits", kI32)
      .optional()
      .constant("split_sizes", kI32)
      .optional()
      .constant("axis", kI32)
      .infer(infer_split)
      .reference(split_reference)
      .traits(Trait::moves_data_only)
      .note("num_splits must divide the axis. split_sizes may hold zeros and must add up to it.",
            "coremltools' definition")
      .gradient(split_gradient)
      .build();
}

}  // namespace moka::ops
