// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/indexing.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_gather_nd(const OpCall& call) {
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
  MOKA_TRY(unify_batches(call, batch, out));
  for (int i = first; i < x.rank(); i++) out.push_back(x.shape()[i]);
  if (const TensorView* v = call.value("indices"); v != nullptr)
    MOKA_TRY(indexer.check(call, *v, x.shape(), batch, depth));
  MOKA_TRY(expect_gatherable(call, out, batch, first));
  return tensor_result(call, x.dtype(), out);
}

Status gather_nd_reference(const OpCall& call, std::span<const TensorView> out) {
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

/// Batch dimensions become components of the index vectors.
void gather_nd_gradient(Gradient& g) {
  const int batch = g.take(batch_dims_of(g.known()));
  const Shape x = g.x().shape(), shape = g.op().input("indices")->type.shape();
  const int last = shape.rank() - 1;
  Ints sizes;
  for (int i = 0; i < shape[last]; i++) sizes.push_back(x[batch + i]);
  if (g.y().shape().count() == 0) return g.set("x", g.fill(x, 0));
  Term indices = nearest_indices(g, "indices", sizes);
  if (batch > 0) {
    Shape numbers = shape;
    numbers[last] = batch;
    const Tensor place = int32s(g, numbers, [&](int64_t i) {
      const int k = static_cast<int>(i % batch);
      return i / batch / shape.count(k + 1, last) % shape[k];
    });
    Value* before = g.call("identity", {{"x", place}}).value();
    indices = g.call("concat", {{"values", std::vector<Value*>{before, indices.value()}}, {"axis", last}});
  }
  g.set("x", g.call("scatter_nd", {{"data", g.fill(x, 0).value()},
                                   {"indices", indices.value()},
                                   {"updates", g.dy().value()},
                                   {"mode", "add"}}));
}

}  // namespace

OpDef define_gather_nd() {
  return gather_builder(
             "gather_nd",
             "For each index vector along the last axis of `indices`, the element or slice of x that it addresses.",
             false, true, infer_gather_nd, gather_nd_reference)
      .gradient(gather_nd_gradient)
      .build();
}

}  // namespace moka::ops
