#include "plan/arranger.h"

namespace moka::plan {

Status Arranger::plan_blocks(const ResolvedOp& op, bool is_loop, Control& step) {
  std::vector<ir::Type> vars;
  if (is_loop)
    for (int v : op.in) vars.push_back(resolved_.at(v).type);
  for (size_t b = 0; b < 2; b++) {
    step.blocks[b] = std::make_shared<PlanCache>();
    if (op.blocks[b] == nullptr) continue;
    auto plan = step.blocks[b]->get(
        vars, options_, [&] { return plan_resolved(op.blocks[b], plan_.get(), options_, is_loop && b == 1); });
    // A branch that no device runs is an error when it is taken.
    if (!plan.ok() && (is_loop || plan.error().code() == ErrorCode::out_of_budget)) return std::move(plan).error();
  }
  return {};
}

Status Arranger::arrange_control(const ResolvedOp& op) {
  Control step;
  step.op = op.op;
  step.in = homes(op.in);
  step.first_arg = op.first;
  for (int& i : step.in)
    if (place(i).type.is_tensor()) i = MOKA_TRY(on_host(i));
  // Values that the blocks use must outlive the step, so they become inputs of it after the operands.
  for (int v : op.captured) {
    home(v);
    MOKA_TRY(return_to_host(resolved_.at(v).value));
    step.in.push_back(home(v));
  }
  close_region();
  const bool is_loop = op.op->type_name() == "while_loop";
  MOKA_TRY(plan_blocks(op, is_loop, step));
  for (int v : op.out) step.out.push_back(add_result(v, {}));
  if (is_loop)
    add_step(Loop{std::move(step)});
  else
    add_step(Cond{std::move(step)});
  return {};
}

}  // namespace moka::plan
