// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_write_state(const OpCall& call) {
  const Type &state = call.type("input"), &data = call.type("data");
  if (!state.is_state() || !state.element().is_tensor())
    return call.error("input", "a state that holds a tensor", cat(state));
  if (!ir::is_compatible(data, state.element()))
    return call.error("data", cat(state.element(), ", which the state holds"), cat(data));
  return std::vector<Type>{};
}

Status write_state_reference(const OpCall& call, std::span<const TensorView>) {
  const TensorView &state = call.in("input"), &data = call.in("data");
  if (state.dtype != data.dtype || !(state.shape == data.shape)) {
    return call.error("data", cat("shape ", state.shape, " of the state"), cat(data.shape));
  }
  copy_all(state, data);
  return {};
}

}  // namespace

OpDef define_write_state() {
  return OpBuilder("write_state", "Replaces what the state holds; has no outputs.", Opset::ios18)
      .in_kind("input", ParamKind::state)
      .in("data", kEverything)
      .infer(infer_write_state)
      .reference(write_state_reference)
      .traits(Trait::stateful)
      .note(
          "The form in which files hold coreml_update_state; coremltools reads it back as that, followed by "
          "read_state.",
          "files that coremltools writes")
      .build();
}

}  // namespace moka::ops
