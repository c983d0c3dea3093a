// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_transpose(const OpCall& call) {
  const Type& x = call.type("x");
  if (!x.is_ranked()) return one(x);
  const Ints perm = MOKA_TRY(axes_of(call, "perm", x.rank()));
  if (perm.size() != x.rank()) return call.error("perm", cat(x.rank(), " axes, as many as x has"), cat(perm.size()));
  Shape out;
  for (int64_t a : perm) out.push_back(x.shape()[static_cast<int>(a)]);
  return tensor_result(call, x.dtype(), out);
}

Status transpose_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const Ints perm = MOKA_TRY(axes_of(call, "perm", x.shape.rank()));
  const auto strides = x.shape.strides(), to = out[0].shape.strides();
  StridedCopy copy;
  for (int i = 0; i < perm.size(); i++) {
    copy.add(out[0].shape[i], to[static_cast<size_t>(i)], strides[static_cast<size_t>(perm[i])]);
  }
  copy.run(out[0], 0, x, 0);
  return {};
}

void transpose_gradient(Gradient& g) {
  const Ints perm = g.ints("perm");
  Ints inverse = perm;
  const int rank = perm.size();
  for (int i = 0; i < rank; i++) inverse[static_cast<int>((perm[i] + rank) % rank)] = i;
  g.set("x", g.transpose(g.dy(), inverse));
}

}  // namespace

OpDef define_transpose() {
  return OpBuilder("transpose", "Reorders the dimensions: dimension i of the result is dimension perm[i] of x.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .constant("perm", kI32)
      .infer(infer_transpose)
      .reference(transpose_reference)
      .traits(Trait::moves_data_only)
      .at(Opset::ios17, [](OpVersion& v) { v.set_domain("T", kPlain17); })
      .note("perm may have negative entries.", "numpy.transpose")
      .gradient(transpose_gradient)
      .build();
}

}  // namespace moka::ops
