// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/indexing.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_gather(const OpCall& call) {
  const Type &x = call.type("x"), &indices = call.type("indices");
  const int batch = MOKA_TRY(batch_dims_of(call));
  const Indexer indexer = MOKA_TRY(Indexer::of(call));
  if (!x.is_ranked() || !indices.is_ranked()) return one(Type::unranked(x.dtype()));
  const int axis = MOKA_TRY(axis_of(call, "axis", x.rank()));
  if (batch > axis || batch > indices.rank()) {
    return call.error("batch_dims", cat("at most ", std::min(axis, indices.rank()), " (axis and rank of indices)"),
                      cat(batch));
  }
  if (x.rank() - 1 + indices.rank() - batch > kMaxRank)
    return call.error("indices", cat("a result of at most rank ", kMaxRank), "more");
  Shape out;
  for (int i = 0; i < axis; i++) out.push_back(x.shape()[i]);
  MOKA_TRY(unify_batches(call, batch, out));
  for (int i = batch; i < indices.rank(); i++) out.push_back(indices.shape()[i]);
  for (int i = axis + 1; i < x.rank(); i++) out.push_back(x.shape()[i]);
  if (const TensorView* v = call.value("indices"); v != nullptr) MOKA_TRY(indexer.check(call, *v, x.shape(), axis));
  MOKA_TRY(expect_gatherable(call, out, axis, axis + 1));
  return tensor_result(call, x.dtype(), out);
}

Status gather_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &indices = call.in("indices");
  const int rank = x.shape.rank(), axis = MOKA_TRY(axis_of(call, "axis", rank)), batch = MOKA_TRY(batch_dims_of(call));
  const Indexer indexer = MOKA_TRY(Indexer::of(call));
  MOKA_TRY(indexer.check(call, indices, x.shape, axis));
  if (out[0].count() == 0) return {};
  const int64_t batches = x.shape.count(0, batch), middle = x.shape.count(batch, axis), size = x.shape[axis];
  const int64_t inner = x.shape.count(axis + 1, rank), n = indices.shape.count(batch, indices.shape.rank());
  int64_t to = 0;
  for (int64_t b = 0; b < batches; b++) {
    for (int64_t m = 0; m < middle; m++) {
      const int64_t base = (b * middle + m) * size;
      for (int64_t i = 0; i < n; i++, to += inner) {
        copy_elements(out[0], to, x, (base + Indexer::nearest(load_i64(indices, b * n + i), size)) * inner, inner);
      }
    }
  }
  return {};
}

/// Batches become components of index vectors: the positions [batches, n] along the axis are added into
/// [batches, size, others].
void batched_gradient(Gradient& g, int axis) {
  const int batch = g.take(batch_dims_of(g.known())), rank = g.x().rank();
  const Shape x = g.x().shape(), indices = g.op().input("indices")->type.shape();
  if (g.y().shape().count() == 0) return g.set("x", g.fill(x, 0));
  const int64_t batches = x.count(0, batch), middle = x.count(batch, axis), size = x[axis],
                after = x.count(axis + 1, rank), n = indices.count(batch, indices.rank());
  const Term at = g.reshape(nearest_index(g, "indices", size), {batches, n, 1});
  const Tensor numbers = int32s(g, {batches, n, 1}, [&](int64_t i) { return i / n; });
  Value* before = g.call("identity", {{"x", numbers}}).value();
  const Term places = g.call("concat", {{"values", std::vector<Value*>{before, at.value()}}, {"axis", 2}});
  const Term dy = g.transpose(g.reshape(g.dy(), {batches, middle, n, after}), {0, 2, 1, 3});
  const Term sums = g.call("scatter_nd", {{"data", g.fill({batches, size, middle, after}, 0).value()},
                                          {"indices", places.value()},
                                          {"updates", dy.value()},
                                          {"mode", "add"}});
  g.set("x", g.reshape(g.transpose(sums, {0, 2, 1, 3}), x));
}

void gather_gradient(Gradient& g) {
  const int rank = g.x().rank(), axis = static_cast<int>((g.integer("axis") + rank) % rank);
  if (g.take(batch_dims_of(g.known())) != 0) return batched_gradient(g, axis);
  g.set("x", g.call("scatter", {{"data", g.fill(g.x().shape(), 0).value()},
                                {"indices", nearest_index(g, "indices", g.x().shape()[axis]).value()},
                                {"updates", g.dy().value()},
                                {"axis", axis},
                                {"mode", "add"}}));
}

}  // namespace

OpDef define_gather() {
  return gather_builder("gather",
                        "Slices of x along an axis in the order of the indices. Negative indices count from the end; "
                        "those beyond the axis read the nearest slice unless validate_indices forbids them.",
                        true, true, infer_gather, gather_reference)
      .note("Indices of rank 0 drop the axis. x and indices share their first batch_dims dimensions.",
            "numpy.take; coremltools' iOS16 test_builder_eval_batch_dims")
      .gradient(gather_gradient)
      .build();
}

}  // namespace moka::ops
