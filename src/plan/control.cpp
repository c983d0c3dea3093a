#include "plan/arranger.h"

namespace moka::plan {

Status Arranger::plan_blocks(const ResolvedOp& op, Step& step) {
  const bool loop = op.op->type_name() == "while_loop";
  step.kind = loop ? Step::Kind::loop : Step::Kind::cond;
  std::vector<ir::Type> vars;
  if (loop)
    for (int v : op.in) vars.push_back(resolved_.at(v).type);
  for (size_t b = 0; b < 2; b++) {
    step.blocks[b] = std::make_shared<PlanCache>();
    if (op.blocks[b] == nullptr) continue;
    auto plan = step.blocks[b]->get(vars, options_,
                                    [&] { return plan_resolved(op.blocks[b], plan_.get(), options_, loop && b == 1); });
    // A branch that no device runs is an error when it is taken.
    if (!plan.ok() && (loop || plan.error().code() == ErrorCode::out_of_budget)) return std::move(plan).error();
  }
  return {};
}

Status Arranger::arrange_control(const ResolvedOp& op) {
  Step step;
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
  MOKA_TRY(plan_blocks(op, step));
  for (int v : op.out) step.out.push_back(add_result(v, {}));
  add_step(std::move(step));
  return {};
}

}  // namespace moka::plan
