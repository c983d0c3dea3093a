// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "base/sha256.h"
#include "linting/lint.h"
#include "linting/repair.h"

namespace moka::linting {
namespace {

/// Equal for values that are the same or constants of the same elements.
std::string key_of(const ir::Value* value) {
  const ir::Constant* constant = value->constant();
  if (constant == nullptr || constant->tensor.empty_handle() || constant->tensor.dtype() == ir::DType::string)
    return constant != nullptr && constant->tensor.dtype() == ir::DType::string && constant->tensor.count() == 1
               ? cat("text ", constant->tensor.text())
               : cat("value ", static_cast<int64_t>(reinterpret_cast<intptr_t>(value)));
  std::string type;
  append_to(type, value->type);
  const ir::Tensor& t = constant->tensor;
  return cat(type, " ", base64(sha256({static_cast<const std::byte*>(t.data()), t.bytes()})));
}

std::string key_of(const ir::Op& op) {
  std::string out = op.type_name();
  for (const ir::Operand& operand : op.operands()) {
    out += cat(" ", operand.param);
    for (const ir::Value* value : operand.values) out += cat(" ", key_of(value));
  }
  return out;
}

/// Operations that compute again what an earlier one computes.
std::vector<std::pair<const ir::Op*, const ir::Op*>> duplicates(const ir::Block& body) {
  std::vector<std::pair<const ir::Op*, const ir::Op*>> out;
  std::map<std::string, const ir::Op*> known;
  for (const auto& op : body.ops()) {
    if (op->has_trait(ir::Trait::constant) || op->has_trait(ir::Trait::random) || op->has_trait(ir::Trait::stateful) ||
        op->has_trait(ir::Trait::constexpr_weight) || op->block_count() > 0 || op->output_count() == 0)
      continue;
    const auto [first, is_new] = known.try_emplace(key_of(*op), op.get());
    if (!is_new) out.emplace_back(first->second, op.get());
  }
  return out;
}

void check_duplicate_operation(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for (const auto& [first, again] : duplicates(view.function->body()))
      report.add(Level::note, place_of(*again), {cat("it computes again what ", place_of(*first), " computes"), "", ""},
                 &view);
}

Result<std::vector<std::string>> fix_duplicate_operation(const Subject& subject, format::ModelSource& source) {
  if (subject.is_network()) {
    const size_t merged = MOKA_TRY(merge_layers(source));
    if (merged == 0) return std::vector<std::string>{};
    return std::vector<std::string>{cat("merged ", merged, merged == 1 ? " layer" : " layers")};
  }
  Replacements all;
  size_t count = 0;
  for (const FunctionView& view : subject.functions)
    for (const auto& [first, again] : duplicates(view.function->body())) {
      bool returned = false;
      for (size_t i = 0; i < again->output_count(); ++i) returned |= !again->output(i)->returned_by().empty();
      if (returned) continue;
      ++count;
      for (size_t i = 0; i < again->output_count(); ++i)
        all[view.function->name].emplace_back(again->output(i)->name, first->output(i)->name);
    }
  if (count == 0) return std::vector<std::string>{};
  MOKA_TRY(replace_values(source, all));
  return std::vector<std::string>{cat("merged ", count, count == 1 ? " operation" : " operations")};
}

}  // namespace

Rule rule_duplicate_operation() {
  return {"duplicate-operation",
          Level::note,
          "Operations that compute the same as an earlier one",
          "Merge them: moka lint --fix.",
          check_duplicate_operation,
          fix_duplicate_operation};
}

}  // namespace moka::linting
