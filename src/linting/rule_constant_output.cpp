// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "linting/lint.h"

namespace moka::linting {
namespace {

/// The values that depend on an input or a state, or are random.
void reach(const ir::Block& block, std::set<const ir::Value*>& reached) {
  for (const auto& op : block.ops()) {
    bool depends = op->has_trait(ir::Trait::random) || op->has_trait(ir::Trait::stateful) || op->block_count() > 0;
    for (const ir::Operand& operand : op->operands())
      for (const ir::Value* value : operand.values) depends |= reached.contains(value);
    if (!depends) continue;
    for (size_t i = 0; i < op->output_count(); ++i) reached.insert(op->output(i));
  }
}

void check_constant_output(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions) {
    const ir::Block& body = view.function->body();
    if (body.inputs().empty()) continue;
    std::set<const ir::Value*> reached;
    for (const auto& input : body.inputs()) reached.insert(input.get());
    reach(body, reached);
    for (size_t i = 0; i < body.outputs().size(); ++i) {
      if (reached.contains(body.outputs()[i])) continue;
      const bool named = view.description != nullptr && i < view.description->outputs.size();
      report.add(Level::warning,
                 cat("output '", named ? view.description->outputs[i].name : body.outputs()[i]->name, "'"),
                 {"it is the same for all inputs", "", ""}, &view);
    }
  }
}

}  // namespace

Rule rule_constant_output() {
  return {"constant-output", Level::warning, "Outputs that no input changes, as tracing leaves them",
          "Trace or export the model again with the code that computes the output; drop it if it is a constant.",
          check_constant_output};
}

}  // namespace moka::linting
