// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/shapes.h"
#include "ops/common/slicing.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_slice_by_index(const OpCall& call) {
  const Type& x = call.type("x");
  if (!x.is_ranked()) return one(x);
  const Slice slice = MOKA_TRY(resolve_slice(call, x.shape()));
  return tensor_result(call, x.dtype(), slice.shape());
}

Status slice_by_index_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const Slice slice = MOKA_TRY(resolve_slice(call, x.shape));
  if (!(slice.shape() == out[0].shape)) {
    return fail(ErrorCode::data, "operation '", call.name(), "' (slice_by_index): the bounds select ", slice.shape(),
                ", the plan expected ", out[0].shape);
  }
  if (out[0].count() == 0) return {};
  const auto from = x.shape.strides(), to = out[0].shape.strides();
  StridedCopy copy;
  int64_t start = 0;
  for (int i = 0, o = 0; i < slice.rank; i++) {
    const Slice::Axis& a = slice.axes[i];
    start += a.start * from[static_cast<size_t>(i)];
    if (!a.squeezed) copy.add(a.size, to[static_cast<size_t>(o++)], a.step * from[static_cast<size_t>(i)]);
  }
  copy.run(out[0], 0, x, start);
  return {};
}

void slice_by_index_gradient(Gradient& g) {
  if (g.y().rank() == 0) {
    const Slice slice = g.take(resolve_slice(g.known(), g.x().shape()));
    const Tensor at = int32s(g, {g.x().rank()}, [&](int64_t i) { return slice.axes[i].start; });
    return g.set("x", g.call("scatter_nd", {{"data", g.fill(g.x().shape(), 0).value()},
                                            {"indices", at},
                                            {"updates", g.dy().value()},
                                            {"mode", "add"}}));
  }
  g.set("x", g.again_as("slice_update", {{"x", g.fill(g.x().shape(), 0).value()}, {"update", g.dy().value()}}));
}

}  // namespace

OpDef define_slice_by_index() {
  OpBuilder b("slice_by_index", "x[begin:end:stride] along every axis. Masks remove a bound or drop the axis.");
  b.type_var("T", kPlain15).in("x", "T").in("begin", kI32).in("end", kI32).constant("stride", kI32).optional();
  return slice_masks(b)
      .infer(infer_slice_by_index)
      .reference(slice_by_index_reference)
      .traits(Trait::moves_data_only)
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.set_domain("T", kPlain17);
            for (const char* p : {"begin", "end", "stride"}) retype(v, p, "U", kSizes17);
          })
      .note(kBoundsNote.text, kBoundsNote.evidence)
      .note(kMasksNote.text, kMasksNote.evidence)
      .gradient(slice_by_index_gradient)
      .build();
}

}  // namespace moka::ops
