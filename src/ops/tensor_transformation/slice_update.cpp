// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/slicing.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_slice_update(const OpCall& call) {
  const Type &x = call.type("x"), &update = call.type("update");
  if (update.is_ranked() && update.rank() == 0) return call.error("update", "at least rank 1", "a scalar");
  if (!x.is_ranked()) return one(x);
  const Slice slice = MOKA_TRY(resolve_slice(call, x.shape()));
  if (update.is_ranked() && !is_compatible(slice.shape(), update.shape())) {
    return call.error("update", cat("the shape of the slice, ", slice.shape()), cat(update.shape()));
  }
  return one(x);
}

Status slice_update_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &update = call.in("update");
  const Slice slice = MOKA_TRY(resolve_slice(call, x.shape));
  if (!(slice.shape() == update.shape)) {
    return fail(ErrorCode::data, "operation '", call.name(), "' (slice_update): the bounds select ", slice.shape(),
                ", the update has ", update.shape);
  }
  copy_all(out[0], x);
  if (update.count() == 0) return {};
  const auto to = x.shape.strides(), from = update.shape.strides();
  StridedCopy copy;
  int64_t start = 0;
  for (int i = 0, u = 0; i < slice.rank; i++) {
    const Slice::Axis& a = slice.axes[i];
    start += a.start * to[static_cast<size_t>(i)];
    if (!a.squeezed) copy.add(a.size, a.step * to[static_cast<size_t>(i)], from[static_cast<size_t>(u++)]);
  }
  copy.run(out[0], start, update, 0);
  return {};
}

void slice_update_gradient(Gradient& g) {
  if (g.wants("update")) g.set("update", g.again_as("slice_by_index", {{"x", g.dy().value()}}, {"x", "update"}));
  if (g.wants("x"))
    g.set("x",
          g.again_as("slice_update", {{"x", g.dy().value()}, {"update", g.fill(g.in("update").shape(), 0).value()}}));
}

}  // namespace

OpDef define_slice_update() {
  OpBuilder b("slice_update", "x with the slice that slice_by_index would take replaced by `update`.", Opset::ios18);
  b.type_var("T", kPlain17)
      .type_var("U", kSizes17)
      .in("x", "T")
      .in("update", "T")
      .in("begin", "U")
      .in("end", "U")
      .constant("stride", "U")
      .optional();
  return slice_masks(b)
      .infer(infer_slice_update)
      .reference(slice_update_reference)
      .traits(Trait::moves_data_only | Trait::updates)
      .note(kBoundsNote.text, kBoundsNote.evidence)
      .note(kMasksNote.text, kMasksNote.evidence)
      .note("The update must have the shape of the slice. It does not broadcast.",
            "coremltools' iOS18 test_tensor_transformation.py")
      .gradient(slice_update_gradient)
      .build();
}

}  // namespace moka::ops
