#include "ops/common/common.h"
#include "ops/common/indexing.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer(const OpCall& call) {
  const Type &data = call.type("data"), &indices = call.type("indices"), &updates = call.type("updates");
  MOKA_TRY(combine_of(call));
  const Indexer indexer = MOKA_TRY(Indexer::of(call));
  if (indices.is_ranked() && updates.is_ranked() && !is_compatible(indices.shape(), updates.shape())) {
    return call.error("updates", cat("the shape of indices, ", indices.shape()), cat(updates.shape()));
  }
  if (!data.is_ranked()) return one(data);
  const int axis = MOKA_TRY(axis_of(call, "axis", data.rank()));
  if (indices.is_ranked()) {
    if (indices.rank() != data.rank())
      return call.error("indices", cat("rank ", data.rank(), " like data"), cat("rank ", indices.rank()));
    int64_t d = 0;
    for (int i = 0; i < data.rank(); i++) {
      if (i != axis && !unify_dim(data.shape()[i], indices.shape()[i], d)) {
        return call.error("indices", cat("the size of data at axis ", i, ", ", data.shape()[i]),
                          cat(indices.shape()[i]));
      }
    }
  }
  if (const TensorView* v = call.value("indices"); v != nullptr) MOKA_TRY(indexer.check(call, *v, data.shape(), axis));
  return one(data);
}

Status reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &data = call.in("data"), &indices = call.in("indices"), &updates = call.in("updates");
  const int rank = data.shape.rank(), axis = MOKA_TRY(axis_of(call, "axis", rank));
  const Combine rule = MOKA_TRY(combine_of(call));
  const Indexer indexer = MOKA_TRY(Indexer::of(call));
  MOKA_TRY(indexer.check(call, indices, data.shape, axis));
  copy_all(out[0], data);
  const int64_t outer = data.shape.count(0, axis), inner = data.shape.count(axis + 1, rank);
  const int64_t size = data.shape[axis], n = indices.shape[axis];
  for (int64_t o = 0, from = 0; o < outer; o++) {
    for (int64_t k = 0; k < n; k++) {
      for (int64_t i = 0; i < inner; i++, from++) {
        const int64_t at = indexer.locate(load_i64(indices, from), size);
        if (at >= 0) combine_elements(rule, out[0], (o * size + at) * inner + i, updates, from, 1);
      }
    }
  }
  return {};
}

}  // namespace

OpDef define_scatter_along_axis() {
  return OpBuilder(
             "scatter_along_axis",
             "Combines the element of data at each index along the axis, and at the update's own "
             "place along the others, with the update, in order. Indices outside, since ios17 also negative ones, "
             "are left out unless validate_indices forbids them.")
      .type_var("T", kNumbers15)
      .in("data", "T")
      .in("indices", kI32)
      .in("updates", "T")
      .constant("axis", kI32)
      .or_else(Tensor::scalar_i64(DType::int32, 0))
      .constant("mode", kString)
      .one_of(combine_modes())
      .or_else(Tensor::text("add"))
      .infer(infer)
      .reference(reference)
      .at(Opset::ios17, [](OpVersion& v) { add_constant(v, "validate_indices", kBool, Tensor::boolean(false)); })
      .note(kScatterNote.text, kScatterNote.evidence)
      .note(kScatterModeNote.text, kScatterModeNote.evidence)
      .note(kValidateNote.text, kValidateNote.evidence)
      .note("mode is add by default, as coremltools registers it, though its text says update.",
            "coremltools' default_inputs")
      .build();
}

}  // namespace moka::ops
