// SPDX-License-Identifier: Apache-2.0
#include "linting/lint.h"
#include "linting/repair.h"

namespace moka::linting {
namespace {

struct Idle {
  const ir::Op* op;
  const ir::Value* same;  ///< has the operation's result
  std::string why;
};

/// Whether `wide` holds all numbers of `narrow`.
bool holds(const ir::Type& wide, const ir::Type& narrow) {
  return wide.dtype() == narrow.dtype() || (wide.dtype() == ir::DType::fp32 && narrow.dtype() == ir::DType::fp16) ||
         (wide.dtype() == ir::DType::fp32 && narrow.dtype() == ir::DType::boolean);
}

std::optional<Idle> idle(const ir::Op& op) {
  if (op.output_count() != 1 || !op.output()->type.is_tensor()) return std::nullopt;
  const ir::Value *x = op.input("x"), *out = op.output();
  if (x == nullptr || !x->type.is_tensor() || x->constant() != nullptr) return std::nullopt;
  const ir::Op* before = x->producer();
  const bool is_same_type = x->type == out->type && x->type.is_concrete();
  if (is_op(&op, "cast")) {
    if (x->type == out->type) return Idle{&op, x, "its input has that type already"};
    if (is_op(before, "cast") && before->input("x")->type == out->type && holds(x->type, out->type))
      return Idle{&op, before->input("x"), cat("it undoes ", place_of(*before))};
  }
  if (is_op(&op, "transpose") && is_op(before, "transpose") && undoes(*before, op))
    return Idle{&op, before->input("x"), cat("it undoes ", place_of(*before))};
  if ((is_op(&op, "reshape") || is_op(&op, "tile")) && is_same_type)
    return Idle{&op, x, "its input has that shape already"};
  if (is_op(&op, "identity")) return Idle{&op, x, "it copies its input"};
  if ((is_op(&op, "mul") || is_op(&op, "real_div")) && is_same_type && uniform_constant(op.input("y")) == 1.0)
    return Idle{&op, x, "its other factor is 1"};
  if ((is_op(&op, "add") || is_op(&op, "sub")) && is_same_type && uniform_constant(op.input("y")) == 0.0)
    return Idle{&op, x, "its other term is 0"};
  return std::nullopt;
}

void check_idle_operation(const Subject& subject, Report& report) {
  if (subject.is_network()) return;  // its importer adds operations of its own
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      const std::optional<Idle> found = idle(op);
      // An output needs an operation of its name.
      if (!found || !op.output()->returned_by().empty()) return;
      report.add(Level::warning, place_of(op), {"it changes nothing and costs a dispatch", found->why, ""}, &view);
    });
}

Result<std::vector<std::string>> fix_idle_operation(const Subject& subject, format::ModelSource& source) {
  if (subject.is_network()) return std::vector<std::string>{};
  Replacements all;
  size_t count = 0;
  for (const FunctionView& view : subject.functions)
    for (const auto& op : view.function->body().ops()) {
      const std::optional<Idle> found = idle(*op);
      if (!found || !op->output()->returned_by().empty()) continue;
      all[view.function->name].emplace_back(op->output()->name, found->same->name);
      ++count;
    }
  if (count == 0) return std::vector<std::string>{};
  MOKA_TRY(replace_values(source, all));
  return std::vector<std::string>{
      cat("dropped ", count, count == 1 ? " operation" : " operations", " that change nothing")};
}

}  // namespace

Rule rule_idle_operation() {
  return {"idle-operation",
          Level::warning,
          "Operations of ML programs that change nothing: casts and transposes back, times 1, plus 0",
          "Drop them: moka lint --fix.",
          check_idle_operation,
          fix_idle_operation};
}

}  // namespace moka::linting
