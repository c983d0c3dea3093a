// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/fixed.h"
#include "plan/arrange.h"
#include "plan/late.h"
#include "plan/plan.h"
#include "plan/prepare.h"

namespace moka::plan {

namespace {

size_t count_folded(const Resolved& resolved) {
  size_t n = 0;
  for (const auto& op : resolved.block->ops()) {
    if (op->has_trait(ir::Trait::constant) || op->has_trait(ir::Trait::parameter) || op->output_count() == 0) continue;
    const int i = resolved.find(op->output());
    n += i >= 0 && resolved.at(i).is_constant();
  }
  return n;
}

/// Plans the blocks of control flow for the types that are known. Blocks use places of the plan, so it comes first.
Status plan_blocks(const Plan& plan, const Control& step, const PlanOptions& options) {
  const Resolved& resolved = *plan.resolved;
  const auto is_its = [&](const ResolvedOp& op) { return op.op == step.op; };
  const ResolvedOp* op = resolved.pending && is_its(*resolved.pending)
                             ? &*resolved.pending
                             : &*std::find_if(resolved.ops.begin(), resolved.ops.end(), is_its);
  const bool is_loop = op->op->type_name() == "while_loop";
  std::vector<ir::Type> vars;
  if (is_loop)
    for (int v : op->in) vars.push_back(resolved.at(v).type);
  for (size_t b = 0; b < step.blocks.size(); b++) {
    if (op->blocks[b] == nullptr) continue;
    auto block = step.blocks[b]->get(vars, options,
                                     [&] { return plan_resolved(op->blocks[b], &plan, options, is_loop && b == 1); });
    // A branch that no device runs is an error when it is taken.
    if (!block.ok() && (is_loop || block.error().code() == ErrorCode::out_of_budget)) return std::move(block).error();
  }
  return {};
}

/// The preparations that read a parameter.
std::shared_ptr<std::vector<Preparation>> keep_renewable(std::vector<Preparation> all) {
  std::erase_if(all, [](const Preparation& p) {
    return std::none_of(p.inputs.begin(), p.inputs.end(), [](const Preparation::Input& in) {
      return in.value != nullptr && ir::is_from_parameter(*in.value);
    });
  });
  return std::make_shared<std::vector<Preparation>>(std::move(all));
}

}  // namespace

size_t Plan::bytes() const {
  size_t n = sizeof *this + sequence.places.size() * (sizeof(Place) + sizeof(Extent) + sizeof(void*)) +
             sequence.steps.size() * sizeof(Step) + memory.steps.size() * sizeof(Scratch);
  for (const Region& r : sequence.regions) n += sizeof r + r.steps.size() * sizeof(RegionStep);
  for_each_step(sequence, [&]<class One>(int, const One& step, int) {
    if constexpr (std::is_base_of_v<Call, One>)
      n += (step.in.size() + step.out.size() + step.first_arg.size()) * sizeof(int);
  });
  if (resolved != nullptr) return n + resolved->bytes(parent == nullptr ? nullptr : parent->resolved.get());
  for (const Place& p : sequence.places)
    if (const Constant* c = std::get_if<Constant>(&p.storage);
        c != nullptr && p.value != nullptr && !ConstantPool::is_constant(*p.value) &&
        (parent == nullptr || !parent->sequence.place_of.contains(p.value)))
      n += c->tensor.bytes();
  return n;
}

Result<std::shared_ptr<const Plan>> plan_resolved(std::shared_ptr<const Resolved> resolved, const Plan* parent,
                                                  const PlanOptions& options, bool own_outputs) {
  MOKA_TRY(check(*resolved));
  const Claims claims = MOKA_TRY(claim(*resolved, parent, options));
  const Assignment assignment = MOKA_TRY(assign(*resolved, claims, options));
  MOKA_TRY(check(assignment, *resolved));
  Arranged arranged = MOKA_TRY(arrange(*resolved, claims, assignment, parent, options, own_outputs));
  MOKA_TRY(check(arranged.sequence));
  Memory memory = MOKA_TRY(assign_memory(arranged.sequence, options));
  MOKA_TRY(check(arranged.sequence, memory));
  std::shared_ptr<LatePreparation> late;
  if (options.prepare_late && parent == nullptr) late = LatePreparation::take(arranged.preparations, options);
  MOKA_TRY(prepare_kernels(arranged.preparations, options));
  std::shared_ptr<std::vector<Preparation>> renewable;
  if (options.renewable) renewable = keep_renewable(std::move(arranged.preparations));
  const size_t folded = count_folded(*resolved);
  const Sequence& sequence = arranged.sequence;
  const bool has_blocks =
      std::any_of(sequence.steps.begin(), sequence.steps.end(), [](const Step& s) { return control_of(s) != nullptr; });
  const bool is_complete = sequence.is_complete();
  if (is_complete && !has_blocks) resolved.reset();
  const auto plan = std::make_shared<const Plan>(
      Plan{std::move(arranged.sequence), std::move(memory), std::move(resolved), folded, parent, assignment.decision,
           std::move(late), is_complete ? nullptr : std::make_shared<PlanCache>(), std::move(renewable)});
  for (const Step& s : plan->sequence.steps)
    if (const Control* control = control_of(s)) MOKA_TRY(plan_blocks(*plan, *control, options));
  if (!is_complete && plan->sequence.pending_runs_first())
    MOKA_TRY(plan_blocks(*plan, *control_of(*plan->sequence.pending), options));
  return plan;
}

Result<std::shared_ptr<const Plan>> plan_block(const ir::Block& block, std::span<const ir::Type> inputs,
                                               const Plan* parent, const PlanOptions& options, bool own_outputs) {
  const Resolved* outer = parent == nullptr ? nullptr : parent->resolved.get();
  return plan_resolved(MOKA_TRY(resolve(block, inputs, outer, *options.constants)), parent, options, own_outputs);
}

Result<std::shared_ptr<const Plan>> plan_rest(const Plan& before, std::span<const ir::Type> outputs,
                                              const PlanOptions& options) {
  return plan_resolved(MOKA_TRY(resolve_rest(*before.resolved, outputs, *options.constants)), &before, options,
                       before.sequence.own_outputs);
}

}  // namespace moka::plan
