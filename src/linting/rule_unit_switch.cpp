// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "linting/lint.h"

namespace moka::linting {
namespace {

/// Whether the operation has enough work to make the Neural Engine worthwhile.
bool is_work(const ir::Op& op) {
  return is_op(&op, "conv") || is_op(&op, "conv_transpose") || is_op(&op, "linear") || is_op(&op, "matmul") ||
         is_op(&op, "einsum") || is_op(&op, "scaled_dot_product_attention");
}

/// Refused operations with work of the Neural Engine before and after them, by what they are connected with.
class Switches {
 public:
  explicit Switches(const FunctionView& view) : refusals_(view.refusals) {
    const auto& ops = view.function->body().ops();
    std::set<const ir::Op*> after, before;
    for (const auto& op : ops)
      for (const ir::Op* from : sources(*op))
        if (after.contains(from) || (is_work(*from) && !is_refused(*from))) after.insert(op.get());
    for (auto op = ops.rbegin(); op != ops.rend(); ++op)
      if (before.contains(op->get()) || (is_work(**op) && !is_refused(**op)))
        for (const ir::Op* from : sources(**op)) before.insert(from);
    for (const auto& op : ops) {
      if (!is_refused(*op) || !after.contains(op.get()) || !before.contains(op.get())) continue;
      size_t mine = groups.size();
      for (const ir::Op* from : sources(*op))
        if (const auto it = group_of_.find(from); it != group_of_.end()) mine = it->second;
      if (mine == groups.size()) groups.emplace_back();
      group_of_[op.get()] = mine;
      groups[mine].push_back(op.get());
    }
  }
  std::vector<std::vector<const ir::Op*>> groups;

 private:
  bool is_refused(const ir::Op& op) const { return refusals_.contains(op.name); }
  static std::vector<const ir::Op*> sources(const ir::Op& op) {
    std::vector<const ir::Op*> out;
    for (const ir::Operand& operand : op.operands())
      for (const ir::Value* value : operand.values)
        if (value->producer() != nullptr && value->constant() == nullptr) out.push_back(value->producer());
    return out;
  }

  const std::map<std::string, Refusal, std::less<>>& refusals_;
  std::map<const ir::Op*, size_t> group_of_;
};

void check_unit_switch(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for (const auto& group : Switches(view).groups) {
      // Indices in int32 follow from the operation that needs them.
      const auto refusal_of = [&](const ir::Op* op) -> const Refusal& { return view.refusals.at(op->name); };
      const auto found = std::find_if(group.begin(), group.end(), [&](const ir::Op* op) {
        return refusal_of(op).reason.find("int32") == std::string::npos;
      });
      const ir::Op* op = found == group.end() ? group.front() : *found;
      const auto& [reason, remedy, source] = refusal_of(op);
      const size_t more = group.size() - 1;
      report.add(Level::note, place_of(*op),
                 {cat("the Neural Engine stops for it and starts again after it: ", reason),
                  cat(source, more == 0 ? "" : cat("; with ", more, " more around it")),
                  remedy.empty() ? "" : cat("Instead: ", remedy, ".")},
                 &view);
    }
}

}  // namespace

Rule rule_unit_switch() {
  return {"unit-switch",
          Level::note,
          "Operations that keep off the Neural Engine between others that run there, as public sources tell",
          "Move it to the beginning or the end of the model, or write it in terms of others (docs/neural-engine.md).",
          check_unit_switch,
          nullptr,
          true};
}

}  // namespace moka::linting
