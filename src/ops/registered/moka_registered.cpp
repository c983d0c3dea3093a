// SPDX-License-Identifier: Apache-2.0
#include "ir/registered.h"

namespace moka::ops {

using namespace ir;

namespace {

Result<std::vector<Type>> infer_moka_registered(const OpCall& call) {
  const auto instance = MOKA_TRY(registered_instance(call));
  std::vector<Type> known;
  for (size_t i = 0; call.op != nullptr && i < call.op->output_count(); i++) known.push_back(call.op->output(i)->type);
  return MOKA_TRY_IN(instance->infer(call.args("inputs"), known), instance->what());
}

Status moka_registered_reference(const OpCall& call, std::span<const TensorView> out) {
  const auto instance = MOKA_TRY(registered_instance(call));
  std::vector<TensorView> in;
  for (const Arg& a : call.args("inputs")) in.push_back(*a.value);
  return run_registered(*instance, in, out);
}

}  // namespace

OpDef define_moka_registered() {
  return OpBuilder("moka_registered", "Runs a layer, an operation or a model that the program registered.")
      .variadic_any("inputs")
      .constant("instance", only(DType::int64))
      .constant("name", kString)
      .infer(infer_moka_registered)
      .reference(moka_registered_reference)
      .traits(Trait::random)
      .note("It is never folded: what is registered may give another result each time.", "decision")
      .build();
}

}  // namespace moka::ops
