#include "plan/planner.h"

namespace moka::plan {

namespace {

constexpr int kMaxBlockDepth = 32;

int depth_of(const Plan* p) {
  int d = 0;
  for (; p != nullptr; p = p->parent)
    if (p->parent == nullptr || p->parent->block != p->block) d++;
  return d;
}

Status check_start(const ir::Block& block, std::span<const ir::Type> inputs, const Plan* parent) {
  if (inputs.size() != block.inputs().size())
    return fail(ErrorCode::internal, "a block of ", block.inputs().size(), " inputs is planned for ", inputs.size());
  if (depth_of(parent) > kMaxBlockDepth)
    return fail(ErrorCode::unsupported, "blocks are nested more than ", kMaxBlockDepth, " deep");
  return {};
}

/// Adds a place for a value that is supplied when the plan starts.
void add_input(Plan& plan, const ir::Value& value, const ir::Type& type) {
  const auto i = static_cast<int>(plan.places.size());
  Place p;
  p.value = &value;
  p.type = type;
  p.storage = Storage::external;
  p.root = i;
  plan.inputs.push_back(i);
  plan.place_of[&value] = i;
  plan.places.push_back(std::move(p));
}

/// A plan that has only the places of the inputs.
Result<std::shared_ptr<Plan>> started_plan(const ir::Block& block, std::span<const ir::Type> inputs, const Plan* parent,
                                           bool own_outputs) {
  auto plan = std::make_shared<Plan>();
  plan->block = &block;
  plan->parent = parent;
  plan->own_outputs = own_outputs;
  for (size_t i = 0; i < inputs.size(); i++) {
    const ir::Type& t = inputs[i].is_state() ? inputs[i].element() : inputs[i];
    if (t.is_tensor() && t.is_concrete()) {
      size_t bytes = MOKA_TRY_IN(ir::storage_bytes(t.dtype(), t.shape()), cat("input '", block.inputs()[i]->name, "'"));
      if (bytes > kLargestValue)
        return fail(ErrorCode::out_of_budget, "input '", block.inputs()[i]->name, "' is a ", t);
    }
    add_input(*plan, *block.inputs()[i], inputs[i]);
  }
  return plan;
}

/// A plan that continues after the end of another one.
Result<std::shared_ptr<Plan>> continued_plan(const Plan& before, std::span<const ir::Type> outputs) {
  auto plan = std::make_shared<Plan>();
  plan->block = before.block;
  plan->parent = &before;
  plan->own_outputs = before.own_outputs;
  if (!before.pending_runs_first) return plan;
  for (size_t i = 0; i < outputs.size(); i++) add_input(*plan, *before.pending->output(i), outputs[i]);
  return plan;
}

/// Plans for the host first. If accelerators take some operations, plans once more with them.
template <class Start, class Import>
Result<std::shared_ptr<const Plan>> planned(const ir::Block& block, const PlanOptions& options, bool own_outputs,
                                            const ir::Op* from, std::span<const ir::Type> types, Start start,
                                            Import import) {
  std::optional<Placement> placement;
  if (!accelerators(options).empty()) {
    Draft draft;
    Planner planner(MOKA_TRY(start()), block, options, own_outputs);
    MOKA_TRY(import(planner));
    MOKA_TRY(planner.draft(from, types, draft));
    placement = MOKA_TRY(place(std::move(draft), options));
    placement->is_whole = planner.is_whole();
  }
  Planner planner(MOKA_TRY(start()), block, options, own_outputs, placement ? &*placement : nullptr);
  MOKA_TRY(import(planner));
  return planner.run(from, types);
}

}  // namespace

size_t Plan::bytes() const {
  size_t n = sizeof *this + places.size() * (sizeof(Place) + sizeof(void*)) + steps.size() * sizeof(Step);
  for (const Place& p : places)
    if (p.storage == Storage::constant && p.value != nullptr && !ConstantPool::is_constant(*p.value) &&
        (parent == nullptr || !parent->place_of.contains(p.value)))
      n += p.constant.bytes();
  for (const Step& s : steps) n += (s.in.size() + s.out.size() + s.first_arg.size()) * sizeof(int);
  return n;
}

std::vector<ir::Type> Plan::output_types() const {
  std::vector<ir::Type> t;
  for (int i : outputs) t.push_back(places[static_cast<size_t>(i)].type);
  return t;
}

Result<std::shared_ptr<const Plan>> plan_block(const ir::Block& block, std::span<const ir::Type> inputs,
                                               const Plan* parent, const PlanOptions& options, bool own_outputs) {
  MOKA_TRY(check_start(block, inputs, parent));
  return planned(
      block, options, own_outputs, nullptr, {}, [&] { return started_plan(block, inputs, parent, own_outputs); },
      [&](Planner& p) { return parent == nullptr ? Status{} : p.import_all(free_values(block)); });
}

Result<std::optional<std::vector<ir::Type>>> infer_block(const ir::Block& block, std::span<const ir::Type> inputs,
                                                         const Plan* parent, const PlanOptions& options,
                                                         int64_t& operations) {
  MOKA_TRY(check_start(block, inputs, parent));
  Planner planner(MOKA_TRY(started_plan(block, inputs, parent, false)), block, options, false);
  if (parent != nullptr) MOKA_TRY(planner.import_all(free_values(block)));
  return planner.infer(operations);
}

Result<std::shared_ptr<const Plan>> plan_rest(const Plan& before, std::span<const ir::Type> outputs,
                                              const PlanOptions& options) {
  return planned(
      *before.block, options, before.own_outputs, before.pending, outputs,
      [&] { return continued_plan(before, outputs); }, [&](Planner& p) { return p.import_later(*before.pending); });
}

}  // namespace moka::plan
