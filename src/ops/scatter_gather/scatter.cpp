// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/indexing.h"
#include "ops/common/scatter_gradient.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_scatter(const OpCall& call) {
  const Type &data = call.type("data"), &indices = call.type("indices"), &updates = call.type("updates");
  MOKA_TRY(combine_of(call));
  const Indexer indexer = MOKA_TRY(Indexer::of(call));
  if (!data.is_ranked()) return one(data);
  const int axis = MOKA_TRY(axis_of(call, "axis", data.rank()));
  if (indices.is_ranked() && updates.is_ranked()) {
    Shape want;
    if (data.rank() - 1 + indices.rank() > kMaxRank)
      return call.error("indices", cat("updates of at most rank ", kMaxRank), "more");
    for (int i = 0; i < axis; i++) want.push_back(data.shape()[i]);
    for (int64_t d : indices.shape()) want.push_back(d);
    for (int i = axis + 1; i < data.rank(); i++) want.push_back(data.shape()[i]);
    if (!is_compatible(want, updates.shape())) return call.error("updates", cat("shape ", want), cat(updates.shape()));
  }
  if (const TensorView* v = call.value("indices"); v != nullptr) MOKA_TRY(indexer.check(call, *v, data.shape(), axis));
  return one(data);
}

Status scatter_reference(const OpCall& call, std::span<const TensorView> out) {
  const int rank = call.in("data").shape.rank(), axis = MOKA_TRY(axis_of(call, "axis", rank));
  const auto [data, indices, updates, rule, indexer] = MOKA_TRY(begin_scatter(call, out[0], axis));
  const int64_t outer = data.shape.count(0, axis), inner = data.shape.count(axis + 1, rank);
  const int64_t size = data.shape[axis], n = indices.count();
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < n; i++) {
      const int64_t at = indexer.locate(load_i64(indices, i), size);
      if (at >= 0) combine_elements(rule, out[0], (o * size + at) * inner, updates, (o * n + i) * inner, inner);
    }
  }
  return {};
}

void scatter_gradient(Gradient& g) { gradient_of_scatter(g, "gather"); }

}  // namespace

OpDef define_scatter() {
  return scatter_op("scatter",
                    "Combines the slices of data at the indices along an axis with the slices of `updates`, in "
                    "order. Indices outside, since iOS17 also negative ones, are ignored unless "
                    "validate_indices forbids them.",
                    true, infer_scatter, scatter_reference, scatter_gradient);
}

}  // namespace moka::ops
