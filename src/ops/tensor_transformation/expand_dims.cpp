// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_expand_dims(const OpCall& call) {
  const Type& x = call.type("x");
  if (!x.is_ranked()) return one(x);
  const TensorView* axes = call.value("axes");
  if (axes == nullptr) return call.error("axes", "known axes", "a value that is not known before running");
  const int64_t rank = x.rank() + axes->count();
  if (rank > kMaxRank) return call.error("axes", cat("a result of at most rank ", kMaxRank), cat("rank ", rank));
  const Ints sorted = MOKA_TRY(axes_of(call, "axes", static_cast<int>(rank)));
  Shape out;
  int next = 0;
  for (int i = 0; i < rank; i++) {
    const bool inserted = std::find(sorted.begin(), sorted.end(), i) != sorted.end();
    out.push_back(inserted ? 1 : x.shape()[next++]);
  }
  return tensor_result(call, x.dtype(), out);
}

Status expand_dims_reference(const OpCall& call, std::span<const TensorView> out) {
  copy_all(out[0], call.in("x"));
  return {};
}

void expand_dims_gradient(Gradient& g) { g.set("x", g.reshape(g.dy(), g.x().shape())); }

}  // namespace

OpDef define_expand_dims() {
  return OpBuilder("expand_dims", "Inserts dimensions of size 1 so that they end up at the given axes of the result.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .constant("axes", kI32)
      .infer(infer_expand_dims)
      .reference(expand_dims_reference)
      .traits(Trait::alias | Trait::moves_data_only)
      .at(Opset::ios17, [](OpVersion& v) { v.set_domain("T", kPlain17); })
      .note("Axes are those of the result. Negative ones count from its end.", "numpy.expand_dims")
      .gradient(expand_dims_gradient)
      .build();
}

}  // namespace moka::ops
