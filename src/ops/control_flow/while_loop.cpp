// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ir/program.h"
#include "ops/common/common.h"
#include "ops/common/merge_types.h"

namespace moka::ops {

namespace {

Status check_inputs(const OpCall& call, const Block& block, std::string_view what, std::span<const Arg> vars) {
  if (block.inputs().size() != vars.size())
    return call.error(cat("expected ", vars.size(), " inputs of its ", what, " block, one for each of loop_vars, got ",
                          block.inputs().size()));
  for (size_t i = 0; i < vars.size(); ++i)
    if (!is_compatible(*vars[i].type, block.inputs()[i]->type))
      return call.error(cat("input ", i, " of its ", what, " block: expected ", *vars[i].type, " as in loop_vars, got ",
                            block.inputs()[i]->type));
  return {};
}

/// Converters also write conditions of shape [1].
bool may_be_scalar(const Type& t) { return !t.is_concrete() || t.shape().count() == 1; }

Result<std::vector<Type>> infer_while_loop(const OpCall& call) {
  if (call.op == nullptr || call.op->block_count() != 2)
    return call.error(cat("expected two blocks, got ", call.op == nullptr ? size_t{0} : call.op->block_count()));
  const auto vars = call.args("loop_vars");
  const Block& condition = *call.op->block(0);
  const Block& body = *call.op->block(1);
  MOKA_TRY(check_inputs(call, condition, "condition", vars));
  MOKA_TRY(check_inputs(call, body, "body", vars));
  if (condition.outputs().size() != 1)
    return call.error(cat("expected one output of its condition block, got ", condition.outputs().size()));
  const Type& go_on = condition.outputs()[0]->type;
  if (!go_on.is_tensor() || go_on.dtype() != DType::boolean || !may_be_scalar(go_on))
    return call.error(cat("expected a bool scalar from its condition block, got ", go_on));
  if (body.outputs().size() != vars.size())
    return call.error(cat("expected ", vars.size(), " outputs of its body block, one for each of loop_vars, got ",
                          body.outputs().size()));
  std::vector<Type> types;
  for (size_t i = 0; i < vars.size(); ++i) {
    const Type& next = body.outputs()[i]->type;
    if (!is_compatible(next, body.inputs()[i]->type) || !is_compatible(next, condition.inputs()[i]->type))
      return call.error(cat("output ", i, " of its body block: expected ", body.inputs()[i]->type,
                            " as the block's input, got ", next));
    auto merged = merge_types(*vars[i].type, next);
    if (!merged) return call.error(cat("output ", i, " of its body block: expected ", *vars[i].type, ", got ", next));
    types.push_back(std::move(*merged));
  }
  return types;
}

/// Loops whose number of iterations is known are unrolled before (ir/specialize.h).
void while_loop_gradient(Gradient& g) {
  g.fail(fail(ErrorCode::unsupported, "no gradient of a loop whose number of iterations is not known before it runs"));
}

}  // namespace

OpDef define_while_loop() {
  return OpBuilder("while_loop",
                   "Repeats the second block, whose outputs become its next inputs, while the first block gives true.")
      .variadic_any("loop_vars")
      .infer(infer_while_loop)
      .traits(Trait::control)
      .gradient(while_loop_gradient)
      .note("Without an iteration the result is loop_vars. Conditions may have shape [1].",
            "coremltools' definition; TensorFlow's converted programs")
      .note(
          "Loop variables may change their shapes. Loops whose types stay the same are planned once. A limit on "
          "iterations is "
          "an option of loading.",
          "converted sequence models; tests/runtime/loops_test.cpp")
      .build();
}

}  // namespace moka::ops
