// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "linting/lint.h"
#include "linting/repair.h"

namespace moka::linting {
namespace {

/// Operations that no output needs, the last one first.
std::vector<const ir::Op*> unused(const ir::Block& body) {
  const std::set<const ir::Value*> read = needed(body);
  std::vector<const ir::Op*> out;
  for (auto it = body.ops().rbegin(); it != body.ops().rend(); ++it) {
    const ir::Op& op = **it;
    bool is_needed = keeps_order(op);
    for (size_t i = 0; i < op.output_count(); ++i) is_needed |= read.contains(op.output(i));
    if (!is_needed && !op.has_trait(ir::Trait::constant) && !op.has_trait(ir::Trait::constexpr_weight))
      out.push_back(&op);
  }
  return out;
}

/// Layers of a network, or of the networks of a pipeline, that nothing reads.
void check_layers(const import::Outline& outline, Report& report) {
  for (const import::Outline::Stage& stage : outline.stages) check_layers(stage.outline, report);
  std::set<std::string> read(outline.outputs.begin(), outline.outputs.end());
  for (const import::Outline::Layer& layer : outline.layers) read.insert(layer.inputs.begin(), layer.inputs.end());
  if (outline.outputs.empty()) return;
  for (size_t i = 0; i < outline.layers.size(); ++i) {
    const import::Outline::Layer& layer = outline.layers[i];
    bool needed = layer.depth > 0 || layer.outputs.empty();
    for (const std::string& name : layer.outputs) needed |= read.contains(name);
    // The last layer of a classifier computes the probabilities, which have another name in the description.
    if (needed || i + 1 == outline.layers.size()) continue;
    report.add(Level::warning, cat("layer '", layer.name, "' (", layer.type, ")"),
               {"nothing reads its results", "", ""});
  }
}

void check_unused_operation(const Subject& subject, Report& report) {
  if (subject.is_network() && subject.outline != nullptr) return check_layers(*subject.outline, report);
  for (const FunctionView& view : subject.functions) {
    const std::vector<const ir::Op*> all = unused(view.function->body());
    for (const ir::Op* op : all) {
      bool is_last = true;
      for (size_t i = 0; i < op->output_count(); ++i) is_last &= !op->output(i)->is_used();
      if (!is_last) continue;
      report.add(Level::warning, place_of(*op),
                 {"no output needs its result",
                  cat(all.size(), all.size() == 1 ? " operation is" : " operations are", " unused in all"), ""},
                 &view);
    }
  }
}

Result<std::vector<std::string>> fix_unused_operation(const Subject&, format::ModelSource& source) {
  std::vector<std::string> done;
  if (const size_t dropped = MOKA_TRY(drop_unused(source)); dropped > 0)
    done.push_back(cat("dropped ", dropped, dropped == 1 ? " operation" : " operations"));
  if (const size_t dropped = MOKA_TRY(drop_unused_layers(source)); dropped > 0)
    done.push_back(cat("dropped ", dropped, dropped == 1 ? " layer" : " layers"));
  return done;
}

}  // namespace

Rule rule_unused_operation() {
  return {"unused-operation",
          Level::warning,
          "Operations and layers that no output needs",
          "Drop them: moka lint --fix.",
          check_unused_operation,
          fix_unused_operation};
}

}  // namespace moka::linting
