// SPDX-License-Identifier: Apache-2.0
#include "ops/common/common.h"
#include "ops/common/strided.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_read_state(const OpCall& call) {
  const Type& state = call.type("input");
  if (!state.is_state() || !state.element().is_tensor())
    return call.error("input", "a state that holds a tensor", cat(state));
  return one(state.element());
}

Status read_state_reference(const OpCall& call, std::span<const TensorView> out) {
  copy_all(out[0], call.in("input"));
  return {};
}

}  // namespace

OpDef define_read_state() {
  return OpBuilder("read_state", "A copy of what the state holds now.", Opset::ios18)
      .in_kind("input", ParamKind::state)
      .infer(infer_read_state)
      .reference(read_state_reference)
      .traits(Trait::stateful)
      .note("What the state holds at this point of the program. Later writes do not change it.",
            "coremltools' definition; tests/api/states_test.cpp")
      .build();
}

}  // namespace moka::ops
