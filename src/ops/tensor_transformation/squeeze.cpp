// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

/// As in PyTorch, named axes of a size other than 1 stay.
Result<std::vector<Type>> infer_squeeze(const OpCall& call) {
  const Type& x = call.type("x");
  if (!x.is_ranked()) return one(x);
  const int rank = x.rank();
  unsigned chosen = ~0u;
  if (call.has("axes")) {
    const Ints axes = MOKA_TRY(axes_of(call, "axes", rank));
    chosen = 0;
    for (int64_t a : axes) chosen |= 1u << a;
  }
  Shape out;
  for (int i = 0; i < rank; i++) {
    const bool candidate = (chosen >> i) & 1;
    if (candidate && x.shape()[i] < 0) return one(Type::unranked(x.dtype()));
    if (!candidate || x.shape()[i] != 1) out.push_back(x.shape()[i]);
  }
  return tensor_result(call, x.dtype(), out);
}

Status squeeze_reference(const OpCall& call, std::span<const TensorView> out) {
  copy_all(out[0], call.in("x"));
  return {};
}

void squeeze_gradient(Gradient& g) { g.set("x", g.reshape(g.dy(), g.x().shape())); }

}  // namespace

OpDef define_squeeze() {
  return OpBuilder("squeeze", "Removes dimensions of size 1: all of them, or those among the given axes.")
      .type_var("T", kPlain15)
      .in("x", "T")
      .constant("axes", kI32)
      .optional()
      .infer(infer_squeeze)
      .reference(squeeze_reference)
      .traits(Trait::alias | Trait::moves_data_only)
      .at(Opset::ios17, [](OpVersion& v) { v.set_domain("T", kPlain17); })
      .note("Without axes all dimensions of size 1 are removed. A named axis of another size stays.", "torch.squeeze")
      .gradient(squeeze_gradient)
      .build();
}

}  // namespace moka::ops
