// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/gradients.h"
#include "ops/common/indexing.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_gather_along_axis(const OpCall& call) {
  const Type &x = call.type("x"), &indices = call.type("indices");
  const Indexer indexer = MOKA_TRY(Indexer::of(call));
  if (!indices.is_ranked()) return one(Type::unranked(x.dtype()));
  if (!x.is_ranked()) return one(Type::tensor(x.dtype(), indices.shape()));
  if (x.rank() != indices.rank())
    return call.error("indices", cat("rank ", x.rank(), " like x"), cat("rank ", indices.rank()));
  const int axis = MOKA_TRY(axis_of(call, "axis", x.rank()));
  Shape out = indices.shape();
  for (int i = 0; i < x.rank(); i++) {
    if (i != axis && !unify_dim(x.shape()[i], indices.shape()[i], out[i])) {
      return call.error("indices", cat("the size of x at axis ", i, ", ", x.shape()[i]), cat(indices.shape()[i]));
    }
  }
  if (const TensorView* v = call.value("indices"); v != nullptr) MOKA_TRY(indexer.check(call, *v, x.shape(), axis));
  MOKA_TRY(expect_gatherable(call, out, axis, axis + 1));
  return tensor_result(call, x.dtype(), out);
}

Status gather_along_axis_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &x = call.in("x"), &indices = call.in("indices");
  const int rank = x.shape.rank(), axis = MOKA_TRY(axis_of(call, "axis", rank));
  const Indexer indexer = MOKA_TRY(Indexer::of(call));
  MOKA_TRY(indexer.check(call, indices, x.shape, axis));
  if (out[0].count() == 0) return {};
  const int64_t outer = x.shape.count(0, axis), inner = x.shape.count(axis + 1, rank);
  const int64_t size = x.shape[axis], n = indices.shape[axis];
  for (int64_t o = 0, to = 0; o < outer; o++) {
    for (int64_t k = 0; k < n; k++) {
      for (int64_t i = 0; i < inner; i++, to++) {
        copy_element(out[0], to, x, (o * size + Indexer::nearest(load_i64(indices, to), size)) * inner + i);
      }
    }
  }
  return {};
}

void gather_along_axis_gradient(Gradient& g) {
  const int rank = g.x().rank(), axis = static_cast<int>((g.integer("axis") + rank) % rank);
  g.set("x", g.call("scatter_along_axis", {{"data", g.fill(g.x().shape(), 0).value()},
                                           {"indices", nearest_index(g, "indices", g.x().shape()[axis]).value()},
                                           {"updates", g.dy().value()},
                                           {"axis", axis},
                                           {"mode", "add"}}));
}

}  // namespace

OpDef define_gather_along_axis() {
  return gather_builder("gather_along_axis",
                        "For each index, the element of x at that position along the axis and at the index's own "
                        "position along the others.",
                        true, false, infer_gather_along_axis, gather_along_axis_reference)
      .gradient(gather_along_axis_gradient)
      .build();
}

}  // namespace moka::ops
