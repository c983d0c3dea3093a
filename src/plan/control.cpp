#include <algorithm>
#include <set>

#include "plan/planner.h"

namespace moka::plan {

namespace {

using TypesOfBlock = Result<std::optional<std::vector<ir::Type>>>;

bool same_at_run_time(const ir::Type& a, const ir::Type& b) {
  return a.is_list() ? b.is_list() && ir::is_compatible(a.element(), b.element()) : a == b;
}

void free_values(const ir::Block& block, std::set<const ir::Value*>& defined, std::vector<const ir::Value*>& out) {
  for (const auto& v : block.inputs()) defined.insert(v.get());
  auto use = [&](const ir::Value* v) {
    if (v->constant() == nullptr && !defined.contains(v)) {
      out.push_back(v);
      defined.insert(v);
    }
  };
  for (const auto& op : block.ops()) {
    for (const ir::Operand& o : op->operands())
      for (const ir::Value* v : o.values) use(v);
    for (size_t i = 0; i < op->block_count(); i++) free_values(*op->block(i), defined, out);
    for (size_t i = 0; i < op->output_count(); i++) defined.insert(op->output(i));
  }
  for (const ir::Value* v : block.outputs()) use(v);
}

}  // namespace

std::vector<const ir::Value*> free_values(const ir::Block& block) {
  std::set<const ir::Value*> defined;
  std::vector<const ir::Value*> out;
  free_values(block, defined, out);
  return out;
}

Result<std::optional<std::vector<ir::Type>>> Planner::control_types(const ir::Op& op, std::span<const int> in,
                                                                    const BlockTypes& types_of) {
  const bool loop = op.type_name() == "while_loop";
  std::vector<ir::Type> vars, types;
  if (loop)
    for (int i : in) vars.push_back(place(i).type);
  for (size_t b = 0; b < 2; b++) {
    if (op.block(b)->inputs().size() != vars.size())
      return fail(ErrorCode::malformed, "operation '", op.name, "' (", op.type_name(), "): block ", b, " expected ",
                  vars.size(), " inputs, has ", op.block(b)->inputs().size());
    auto made = types_of(b, vars);
    if (!made.ok()) {
      if (made.error().code() == ErrorCode::out_of_budget || loop) return std::move(made).error();
      return std::nullopt;
    }
    if (!*made) return std::nullopt;
    if (loop && b == 0) continue;
    std::vector<ir::Type> out = std::move(**made);
    const std::vector<ir::Type>& expected = loop ? vars : b == 0 ? out : types;
    if (out.size() != expected.size() || out.size() != op.output_count() ||
        !std::equal(out.begin(), out.end(), expected.begin(), same_at_run_time))
      return std::nullopt;
    types = std::move(out);
  }
  return types;
}

Result<bool> Planner::plan_control(const ir::Op& op) {
  if (op.block_count() != 2)
    return fail(ErrorCode::malformed, "operation '", op.name, "' needs two blocks, has ", op.block_count());
  if (inferred_ != nullptr) return infer_control(op);
  std::vector<uint32_t> first;
  std::vector<int> in = MOKA_TRY(operands(op, first));
  for (int& i : in)
    if (place(i).type.is_tensor()) i = MOKA_TRY(on_host(i));
  const bool loop = op.type_name() == "while_loop";

  Step step;
  step.kind = loop ? Step::Kind::loop : Step::Kind::cond;
  step.op = &op;
  step.blocks[0] = std::make_shared<PlanCache>();
  step.blocks[1] = std::make_shared<PlanCache>();

  // Values that the blocks use must outlive the step, so they become inputs of it after the operands.
  std::vector<int> all = in;
  for (size_t b = 0; b < 2; b++)
    for (const ir::Value* v : free_values(*op.block(b))) {
      MOKA_TRY(return_to_host(v));
      all.push_back(MOKA_TRY(find(v)));
    }
  close_region();

  const auto types = MOKA_TRY(control_types(op, in, [&](size_t b, const std::vector<ir::Type>& vars) -> TypesOfBlock {
    const auto inner = MOKA_TRY(step.blocks[b]->get(
        vars, options_, [&] { return plan_block(*op.block(b), vars, plan_.get(), options_, loop && b == 1); }));
    if (!inner->is_complete()) return std::nullopt;
    return inner->output_types();
  }));
  if (!types) {
    MOKA_TRY(stop_at(op, std::move(in), std::move(first)));
    plan_->pending_runs_first = true;
    plan_->pending_step.kind = step.kind;
    plan_->pending_step.blocks[0] = step.blocks[0];
    plan_->pending_step.blocks[1] = step.blocks[1];
    return false;
  }
  MOKA_TRY(add_to_draft({&op}, in, *types));
  step.in = std::move(all);
  step.first_arg = std::move(first);
  for (size_t i = 0; i < types->size(); i++) step.out.push_back(add_result(op.output(i), (*types)[i], {}));
  add_step(std::move(step));
  return true;
}

}  // namespace moka::plan
