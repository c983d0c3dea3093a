// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"

namespace moka::linting {
namespace {

void check_constant_operation(const Subject& subject, Report& report) {
  if (subject.is_network()) return;
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      if (op.operands().empty() || op.block_count() > 0 || op.has_trait(ir::Trait::random) ||
          op.has_trait(ir::Trait::stateful) || op.has_trait(ir::Trait::constexpr_weight) || op.output_count() == 0 ||
          !op.output()->type.is_tensor())
        return;
      for (const ir::Operand& operand : op.operands())
        for (const ir::Value* value : operand.values)
          if (value->constant() == nullptr) return;
      report.add(Level::note, place_of(op), {"it computes the same constant in every prediction", "", ""}, &view);
    });
}

}  // namespace

Rule rule_constant_operation() {
  return {
      "constant-operation", Level::note, "Operations that read constants alone, so that each prediction repeats them",
      "Store the result as a constant: convert with coremltools' pass const_elimination.", check_constant_operation};
}

}  // namespace moka::linting
