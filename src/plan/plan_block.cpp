#include "plan/arranger.h"

namespace moka::plan {

size_t Plan::bytes() const {
  size_t n = sizeof *this + places.size() * (sizeof(Place) + sizeof(void*)) + steps.size() * sizeof(Step);
  for (const Region& r : regions) n += sizeof r + r.steps.size() * sizeof(RegionStep);
  for_each_step(*this, [&]<class One>(int, const One& step, int) {
    if constexpr (std::is_base_of_v<Call, One>)
      n += (step.in.size() + step.out.size() + step.first_arg.size()) * sizeof(int);
  });
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

CopiedValues::CopiedValues(const Plan& plan) : plan_(plan), from_(plan.places.size(), -1) {
  for_each_step(plan, [&]<class One>(int, const One& step, int) {
    if constexpr (!std::is_base_of_v<Call, One>)
      for (int i : writes_of(plan, step)) from_[static_cast<size_t>(i)] = reads_of(plan, step)[0];
  });
  for (const PixelInput& p : plan.pixels) from_[static_cast<size_t>(p.place)] = plan.inputs[p.input];
}

const ir::Value* CopiedValues::of(int place) const {
  while (place >= 0 && plan_.places[static_cast<size_t>(place)].value == nullptr)
    place = from_[static_cast<size_t>(place)];
  return place < 0 ? nullptr : plan_.places[static_cast<size_t>(place)].value;
}

std::string refusal_of(const KernelCall& call, const kernel::Device& device) {
  for (const Refusal& r : call.refusals)
    if (r.device == device.name()) return r.reason;
  if (call.bids)
    for (const Bid& b : *call.bids)
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
