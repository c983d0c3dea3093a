// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "linting/lint.h"
#include "linting/repair.h"

namespace moka::linting {
namespace {

bool is_text(const ir::Value* value) {
  const ir::Constant* constant = value->constant();
  return constant != nullptr && constant->tensor.dtype() == ir::DType::string;
}

/// Whether a transpose of x may as well come after the operation.
bool is_elementwise(const ir::Op& op) {
  if (!op.has_trait(ir::Trait::elementwise) || op.output_count() != 1 || op.input("x") == nullptr) return false;
  for (const ir::Operand& operand : op.operands())
    for (const ir::Value* value : operand.values)
      if (value != op.input("x") && !is_text(value) && !uniform_constant(value)) return false;
  return true;
}

/// Whether the operation means the same on axes of another order as it is written.
bool fits_any_order(const ir::Op& op) {
  for (const ir::Operand& operand : op.operands())
    for (const ir::Value* value : operand.values)
      if (value != op.input("x") && !is_text(value) &&
          (value->constant() == nullptr || value->constant()->tensor.count() != 1))
        return false;
  return op.output()->type.is_tensor() && op.output()->type.is_ranked() &&
         op.output()->type.rank() == op.input("x")->type.rank();
}

struct Pair {
  const ir::Op *first, *second;
  std::vector<const ir::Op*> between;  ///< from the second on
};

/// The transpose that `second` undoes, where only elementwise operations stand between them.
std::optional<Pair> undone_by(const ir::Op& second) {
  if (!is_op(&second, "transpose")) return std::nullopt;
  Pair out{nullptr, &second, {}};
  const ir::Op* op = second.input("x")->producer();
  for (; op != nullptr && is_elementwise(*op); op = op->input("x")->producer()) {
    if (op->output()->users().size() != 1 || !op->output()->returned_by().empty()) return std::nullopt;
    out.between.push_back(op);
  }
  // The rule idle-operation names two transposes in a row.
  if (out.between.empty() || !is_op(op, "transpose") || op->output()->users().size() != 1) return std::nullopt;
  out.first = op;
  return op->output()->returned_by().empty() && undoes(*op, second) ? std::optional(out) : std::nullopt;
}

void check_transpose_pair(const Subject& subject, Report& report) {
  if (subject.is_network()) return;  // its importer adds operations of its own
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      const std::optional<Pair> pair = undone_by(op);
      if (!pair) return;
      report.add(Level::warning, place_of(op),
                 {cat("it undoes ", place_of(*pair->first), ", and the operations between them need neither"),
                  "each of the two is a dispatch that moves all data", ""},
                 &view);
    });
}

/// Pairs that can be removed. A pair that makes an output of the function stays, since it names the output.
std::vector<Pair> droppable(const FunctionView& view) {
  std::vector<Pair> out;
  std::set<const ir::Op*> used;
  for (const auto& op : view.function->body().ops()) {
    std::optional<Pair> pair = undone_by(*op);
    if (!pair || used.contains(pair->first) || !op->output()->returned_by().empty()) continue;
    bool fits = pair->first->parent() == op->parent() && pair->first->input("x")->constant() == nullptr;
    for (const ir::Op* between : pair->between) fits &= fits_any_order(*between);
    if (!fits) continue;
    used.insert(pair->second);
    out.push_back(std::move(*pair));
  }
  return out;
}

Result<std::vector<std::string>> fix_transpose_pair(const Subject& subject, format::ModelSource& source) {
  if (subject.is_network()) return std::vector<std::string>{};
  Replacements replaced;
  AxisOrders orders;
  size_t count = 0;
  for (const FunctionView& view : subject.functions)
    for (const Pair& pair : droppable(view)) {
      auto& mine = replaced[view.function->name];
      mine.emplace_back(pair.first->output()->name, pair.first->input("x")->name);
      mine.emplace_back(pair.second->output()->name, pair.second->input("x")->name);
      const std::optional<ir::Permutation> order = ir::permutation_of(*pair.first);
      for (const ir::Op* between : pair.between) orders[view.function->name][between->output()->name] = order.value();
      ++count;
    }
  if (count == 0) return std::vector<std::string>{};
  MOKA_TRY(replace_values(source, replaced));
  MOKA_TRY(undo_transposes(source, orders));
  return std::vector<std::string>{
      cat("dropped ", count, count == 1 ? " pair" : " pairs", " of transposes around elementwise operations")};
}

}  // namespace

Rule rule_transpose_pair() {
  return {"transpose-pair",
          Level::warning,
          "Transposes that undo each other around elementwise operations",
          "Compute the elementwise operations without the two transposes: moka lint --fix does so where it is safe.",
          check_transpose_pair,
          fix_transpose_pair};
}

}  // namespace moka::linting
