// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/indexing.h"
#include "ops/common/scatter_gradient.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_scatter_along_axis(const OpCall& call) {
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

Status scatter_along_axis_reference(const OpCall& call, std::span<const TensorView> out) {
  const int rank = call.in("data").shape.rank(), axis = MOKA_TRY(axis_of(call, "axis", rank));
  const auto [data, indices, updates, rule, indexer] = MOKA_TRY(begin_scatter(call, out[0], axis));
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

void scatter_along_axis_gradient(Gradient& g) { gradient_of_scatter(g, "gather_along_axis"); }

}  // namespace

OpDef define_scatter_along_axis() {
  return scatter_op(
      "scatter_along_axis",
      "Combines the element of data at each index along the axis, and at the update's own "
      "position along the others, with the update, in order. Indices outside, since iOS17 also negative ones, "
      "are ignored unless validate_indices forbids them.",
      true, infer_scatter_along_axis, scatter_along_axis_reference, scatter_along_axis_gradient);
}

}  // namespace moka::ops
