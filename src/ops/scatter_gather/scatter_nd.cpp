// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/indexing.h"
#include "ops/common/scatter_gradient.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_scatter_nd(const OpCall& call) {
  const Type &data = call.type("data"), &indices = call.type("indices"), &updates = call.type("updates");
  MOKA_TRY(combine_of(call));
  const Indexer indexer = MOKA_TRY(Indexer::of(call));
  if (!data.is_ranked() || !indices.is_ranked()) return one(data);
  if (indices.rank() < 1) return call.error("indices", "rank 1 or more", "a scalar");
  const int last = indices.rank() - 1;
  const int64_t depth = indices.shape()[last];
  if (depth < 0) return one(data);
  if (depth > data.rank()) return call.error("indices", cat("at most ", data.rank(), " components"), cat(depth));
  const int first = static_cast<int>(depth);
  if (last + data.rank() - first > kMaxRank)
    return call.error("indices", cat("updates of at most rank ", kMaxRank), "more");
  Shape want;
  for (int i = 0; i < last; i++) want.push_back(indices.shape()[i]);
  for (int i = first; i < data.rank(); i++) want.push_back(data.shape()[i]);
  if (updates.is_ranked() && !is_compatible(want, updates.shape()))
    return call.error("updates", cat("shape ", want), cat(updates.shape()));
  if (const TensorView* v = call.value("indices"); v != nullptr)
    MOKA_TRY(indexer.check(call, *v, data.shape(), 0, depth));
  return one(data);
}

Status scatter_nd_reference(const OpCall& call, std::span<const TensorView> out) {
  const Shape& rows = call.in("indices").shape;
  const int last = rows.rank() - 1, depth = static_cast<int>(rows[last]);
  const auto [data, indices, updates, rule, indexer] = MOKA_TRY(begin_scatter(call, out[0], 0, depth));
  const int64_t n = indices.shape.count(0, last), inner = data.shape.count(depth, data.shape.rank());
  const auto steps = data.shape.strides();
  for (int64_t row = 0; row < n; row++) {
    int64_t to = 0;
    bool inside = true;
    for (int d = 0; d < depth && inside; d++) {
      const int64_t at = indexer.locate(load_i64(indices, row * depth + d), data.shape[d]);
      inside = at >= 0;
      to += at * steps[static_cast<size_t>(d)];
    }
    if (inside) combine_elements(rule, out[0], to, updates, row * inner, inner);
  }
  return {};
}

void scatter_nd_gradient(Gradient& g) { gradient_of_scatter(g, "gather_nd"); }

}  // namespace

OpDef define_scatter_nd() {
  return scatter_op(
      "scatter_nd",
      "Combines the element or slice of data that each index vector addresses with its update, in order. "
      "Indices outside, since iOS17 also negative ones, are ignored unless validate_indices forbids them.",
      false, infer_scatter_nd, scatter_nd_reference, scatter_nd_gradient);
}

}  // namespace moka::ops
