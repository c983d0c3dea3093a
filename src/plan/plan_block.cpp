#include "plan/arranger.h"

namespace moka::plan {

size_t Plan::bytes() const {
  size_t n = sizeof *this + places.size() * (sizeof(Place) + sizeof(void*)) + steps.size() * sizeof(Step);
  for (const Step& s : steps) n += (s.in.size() + s.out.size() + s.first_arg.size()) * sizeof(int);
  if (resolved != nullptr) return n + resolved->bytes(parent == nullptr ? nullptr : parent->resolved.get());
  for (const Place& p : places)
    if (p.storage == Storage::constant && p.value != nullptr && !ConstantPool::is_constant(*p.value) &&
        (parent == nullptr || !parent->place_of.contains(p.value)))
      n += p.constant.bytes();
  return n;
}

std::vector<ir::Type> Plan::output_types() const {
  std::vector<ir::Type> t;
  for (int i : outputs) t.push_back(places[static_cast<size_t>(i)].type);
  return t;
}

std::string refusal_of(const Step& step, const kernel::Device& device) {
  for (const Refusal& r : step.refusals)
    if (r.device == device.name()) return r.reason;
  if (step.bids)
    for (const Bid& b : *step.bids)
      if (b.device == &device) return b.refusal;
  return {};
}

Result<std::shared_ptr<const Plan>> plan_resolved(std::shared_ptr<const Resolved> resolved, const Plan* parent,
                                                  const PlanOptions& options, bool own_outputs) {
  MOKA_TRY(check(*resolved));
  const Claims claims = MOKA_TRY(claim(*resolved, parent, options));
  const Assignment assignment = MOKA_TRY(assign(*resolved, claims, options));
  MOKA_TRY(check(assignment, *resolved));
  return Arranger(std::move(resolved), claims, assignment, parent, options, own_outputs).run();
}

Result<std::shared_ptr<const Plan>> plan_block(const ir::Block& block, std::span<const ir::Type> inputs,
                                               const Plan* parent, const PlanOptions& options, bool own_outputs) {
  const Resolved* outer = parent == nullptr ? nullptr : parent->resolved.get();
  return plan_resolved(MOKA_TRY(resolve(block, inputs, outer, *options.constants)), parent, options, own_outputs);
}

Result<std::shared_ptr<const Plan>> plan_rest(const Plan& before, std::span<const ir::Type> outputs,
                                              const PlanOptions& options) {
  return plan_resolved(MOKA_TRY(resolve_rest(*before.resolved, outputs, *options.constants)), &before, options,
                       before.own_outputs);
}

}  // namespace moka::plan
