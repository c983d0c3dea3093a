// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/shapes.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_coreml_update_state(const OpCall& call) {
  const Type &state = call.type("state"), &value = call.type("value");
  if (!state.is_state() || !state.element().is_tensor())
    return call.error("state", "a state that holds a tensor", cat(state));
  if (!ir::is_compatible(value, state.element()))
    return call.error("value", cat(state.element(), ", which the state holds"), cat(value));
  return one(state.element());
}

Status coreml_update_state_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView &state = call.in("state"), &value = call.in("value");
  if (state.dtype != value.dtype || !(state.shape == value.shape)) {
    return call.error("value", cat("shape ", state.shape, " of the state"), cat(value.shape));
  }
  copy_all(out[0], value);
  copy_all(state, value);
  return {};
}

}  // namespace

OpDef define_coreml_update_state() {
  return OpBuilder("coreml_update_state", "Replaces what the state holds and returns the new value.", Opset::ios18)
      .type_var("T", kPlain17)
      .in_kind("state", ParamKind::state)
      .in("value", "T")
      .infer(infer_coreml_update_state)
      .reference(coreml_update_state_reference)
      .traits(Trait::stateful)
      .note("Writes, then returns the value. The value must have the state's shape.",
            "coremltools' iOS18 test_states.py")
      .build();
}

}  // namespace moka::ops
