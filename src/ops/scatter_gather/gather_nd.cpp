#include "ops/common/common.h"
#include "ops/common/indexing.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<int> batch_dims_of(const OpCall& call) {
  if (call.version().param_index("batch_dims") < 0) return 0;
  const int64_t n = MOKA_TRY(call.integer("batch_dims"));
  if (n < 0 || n > kMaxRank) return call.error("batch_dims", cat("0 to ", kMaxRank), cat(n));
  return static_cast<int>(n);
}

Result<std::vector<Type>> infer(const OpCall& call) {
  const Type &x = call.type("x"), &indices = call.type("indices");
  const int batch = MOKA_TRY(batch_dims_of(call));
  const Indexer indexer = MOKA_TRY(Indexer::of(call));
  if (!x.is_ranked() || !indices.is_ranked()) return one(Type::unranked(x.dtype()));
  if (indices.rank() < 1) return call.error("indices", "rank 1 or more", "a scalar");
  const int last = indices.rank() - 1;
  const int64_t depth = indices.shape()[last];
  if (depth < 0) return one(Type::unranked(x.dtype()));
  if (batch > last || batch + depth > x.rank()) {
    return call.error("indices", cat("at most ", x.rank() - batch, " components after ", batch, " batch dimensions"),
                      cat(indices.shape()));
  }
  const int first = batch + static_cast<int>(depth);
  if (last + x.rank() - first > kMaxRank)
    return call.error("indices", cat("a result of at most rank ", kMaxRank), "more");
  Shape out;
  for (int i = 0; i < last; i++) out.push_back(indices.shape()[i]);
  for (int i = 0; i < batch; i++) {
    if (!unify_dim(x.shape()[i], indices.shape()[i], out[i])) {
      return call.error("indices", cat("batch dimension ", i, " of size ", x.shape()[i]), cat(indices.shape()));
    }
  }
  for (int i = first; i < x.rank(); i++) out.push_back(x.shape()[i]);
  if (const TensorView* v = call.value("indices"); v != nullptr)
    MOKA_TRY(indexer.check(call, *v, x.shape(), batch, depth));
  if (out.is_concrete() && MOKA_TRY(out.checked_count()) > 0) {
    for (int i = batch; i < first; i++)
      if (x.shape()[i] == 0) return call.error("x", cat("elements along axis ", i), cat(x.shape()));
  }
  return tensor_result(x.dtype(), out);
}

Status reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &indices = call.in("indices");
  const int batch = MOKA_TRY(batch_dims_of(call)), last = indices.shape.rank() - 1;
  const auto depth = static_cast<int>(indices.shape[last]);
  const Indexer indexer = MOKA_TRY(Indexer::of(call));
  MOKA_TRY(indexer.check(call, indices, x.shape, batch, depth));
  if (out[0].count() == 0) return {};
  const int64_t batches = x.shape.count(0, batch), per_batch = x.shape.count(batch, x.shape.rank());
  const int64_t inner = x.shape.count(batch + depth, x.shape.rank()), n = indices.shape.count(batch, last);
  const auto steps = x.shape.strides();
  for (int64_t b = 0, row = 0; b < batches; b++) {
    for (int64_t i = 0; i < n; i++, row++) {
      int64_t from = b * per_batch;
      for (int d = 0; d < depth; d++) {
        from += Indexer::nearest(load_i64(indices, row * depth + d), x.shape[batch + d]) *
                steps[static_cast<size_t>(batch + d)];
      }
      copy_elements(out[0], row * inner, x, from, inner);
    }
  }
  return {};
}

}  // namespace

OpDef define_gather_nd() {
  return OpBuilder("gather_nd",
                   "For each index vector, the last axis of `indices`, the element or slice of x that it names.")
      .type_var("T", kNumbers15)
      .in("x", "T")
      .in("indices", kI32)
      .infer(infer)
      .reference(reference)
      .traits(Trait::moves_data_only)
      .at(Opset::ios16,
          [](OpVersion& v) {
            retype(v, "indices", "I", kIndices16);
            add_constant(v, "batch_dims", kI32, Tensor::scalar_i64(DType::int32, 0));
          })
      .at(Opset::ios17,
          [](OpVersion& v) {
            v.set_domain("T", kNumbers17);
            v.set_domain("I", kIndices17);
            add_constant(v, "validate_indices", kBool, Tensor::boolean(false));
          })
      .note(kGatherNote.text, kGatherNote.evidence)
      .note(kValidateNote.text, kValidateNote.evidence)
      .build();
}

}  // namespace moka::ops
