// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_tile(const OpCall& call) {
  const Type& x = call.type("x");
  MOKA_TRY(expect_vector(call, "reps"));
  if (!x.is_ranked()) return one(x);
  const TensorView* reps = call.value("reps");
  const int64_t n = reps != nullptr ? reps->count() : length_of(call, "reps");
  if (n >= 0 && n != x.rank()) return call.error("reps", cat(x.rank(), " entries, the rank of x"), cat(n));
  Shape out;
  for (int i = 0; i < x.rank(); i++) {
    if (reps == nullptr) {
      out.push_back(kAnyDim);
      continue;
    }
    const int64_t r = load_i64(*reps, i);
    if (r < 0) return call.error("reps", "entries of at least 0", cat(r));
    out.push_back(MOKA_TRY(multiply_dims(x.shape()[i], r)));
  }
  return tensor_result(call, x.dtype(), out);
}

Status tile_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  if (out[0].count() == 0) return {};
  const auto from = x.shape.strides(), to = out[0].shape.strides();
  StridedCopy copy;
  for (int i = 0; i < x.shape.rank(); i++) {
    const auto u = static_cast<size_t>(i);
    copy.add(out[0].shape[i] / x.shape[i], to[u] * x.shape[i], 0);
    copy.add(x.shape[i], to[u], from[u]);
  }
  copy.run(out[0], 0, x, 0);
  return {};
}

void tile_gradient(Gradient& g) {
  const Shape &x = g.x().shape(), &y = g.y().shape();
  if (x.count() == 0 || y.count() == 0) return g.set("x", g.fill(x, 0));
  Term dy = g.dy();
  int64_t before = 1, after = y.count();
  for (int i = 0; i < x.rank(); i++) {
    after /= y[i];
    if (y[i] != x[i]) dy = g.sum(g.reshape(dy, {before, y[i] / x[i], x[i], after}), {1}, false);
    before *= x[i];
  }
  g.set("x", g.reshape(dy, x));
}

}  // namespace

OpDef define_tile() {
  return OpBuilder("tile", "Repeats the whole of x reps[i] times along axis i.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .in("reps", kI32)
      .infer(infer_tile)
      .reference(tile_reference)
      .traits(Trait::moves_data_only)
      .note("0 repetitions give an empty tensor.", "numpy.tile")
      .gradient(tile_gradient)
      .build();
}

}  // namespace moka::ops
