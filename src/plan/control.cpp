#include "plan/arranger.h"

namespace moka::plan {

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
  for (int v : op.out) step.out.push_back(add_result(v, {}));
  add_step(with_caches<Step>(std::move(step)));
  return {};
}

}  // namespace moka::plan
