// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Status identity_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& x = call.in("x");
  const Type& type = call.type("x");
  if (out[0].data == x.data) return {};
  if (type.is_list())
    out[0].list() = x.list();
  else if (type.is_dict())
    out[0].dict() = x.dict();
  else
    copy_all(out[0], x);
  return {};
}

void identity_gradient(Gradient& g) { g.set("x", g.dy()); }

}  // namespace

OpDef define_identity() {
  return OpBuilder("identity", "The input itself: a tensor, a list or a dictionary.")
      .in_kind("x", ParamKind::any)
      .infer(same_as())
      .reference(identity_reference)
      .traits(Trait::alias | Trait::moves_data_only)
      .note("Makes no copy.", "coremltools' definition")
      .gradient(identity_gradient)
      .build();
}

}  // namespace moka::ops
