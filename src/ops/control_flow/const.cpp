// SPDX-License-Identifier: Apache-2.0
#include "ir/program.h"
#include "ops/common/common.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_const(const OpCall& call) {
  if (call.op == nullptr || call.op->output_count() != 1 || call.op->output()->constant() == nullptr)
    return call.error("expected one output that holds a value");
  return one(call.op->output()->constant()->type);
}

}  // namespace

/// The value is not a parameter. It is Value::constant() of the output.
OpDef define_const() {
  return OpBuilder("const",
                   "A value that the program holds: a number, a tensor, a text, a list, a tuple or a dictionary.",
                   Opset::ios13)
      .infer(infer_const)
      .traits(Trait::constant)
      .note(
          "Values are in the program or in its weights file. fp16, fp32 and types of less than a byte are kept as "
          "stored.",
          "MIL.proto")
      .build();
}

}  // namespace moka::ops
