#include <algorithm>
#include <set>

#include "plan/arranger.h"
#include "plan/late.h"

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

}  // namespace

Arranger::Arranger(std::shared_ptr<const Resolved> resolved, const Claims& claims, const Assignment& assignment,
                   const Plan* parent, const PlanOptions& options, bool own_outputs)
    : plan_(std::make_shared<Plan>()),
      resolved_(*resolved),
      claims_(claims),
      assignment_(assignment),
      options_(options),
      states_(options.reuse_buffers ? resolved->states : kNoStates),
      own_outputs_(own_outputs),
      home_(resolved->values.size(), -1) {
  plan_->block = resolved->block;
  plan_->parent = parent;
  plan_->own_outputs = own_outputs;
  plan_->resolved = std::move(resolved);
  plan_->decision = assignment.decision;
  for (size_t n = 0; n < resolved_.ops.size(); n++)
    if (assignment.device[n] != nullptr) device_of_[resolved_.ops[n].op] = assignment.device[n];
}

const kernel::Device* Arranger::memory_of(const ir::Op& op) const {
  const auto it = device_of_.find(&op);
  return it == device_of_.end() ? nullptr : it->second;
}

Status Arranger::arrange(size_t n) {
  const ResolvedOp& op = resolved_.ops[n];
  return op.op->has_trait(ir::Trait::control) ? arrange_control(op) : arrange_call(n);
}

Status Arranger::arrange_pending() {
  const ResolvedOp& op = *resolved_.pending;
  for (int i : plan_->inputs)
    if (place(i).device != nullptr)
      return fail(ErrorCode::internal, "a plan with states in the memory of a device ends at '", op.op->name, "'");
  Control step;
  step.op = op.op;
  step.in = homes(op.in);
  step.first_arg = op.first;
  plan_->continuations = std::make_unique<PlanCache>();
  for (int& i : step.in)
    if (!resolved_.pending_runs_first || place(i).type.is_tensor()) i = MOKA_TRY(on_host(i));
  for (const ir::Value* v : used_from(*plan_->block, *op.op)) MOKA_TRY(return_to_host(v));
  MOKA_TRY(write_states(false));
  close_region();
  const bool is_loop = op.op->type_name() == "while_loop";
  if (resolved_.pending_runs_first) MOKA_TRY(plan_blocks(op, is_loop, step));
  if (!resolved_.pending_runs_first)
    plan_->pending = Infer{std::move(step)};
  else if (is_loop)
    plan_->pending = Loop{std::move(step)};
  else
    plan_->pending = Cond{std::move(step)};
  return {};
}

Status Arranger::finish_outputs() {
  // The old content of states is read before the states are written.
  for (int v : resolved_.outputs)
    if (const int i = home(v); place(i).device != nullptr && place(i).storage == Storage::external)
      MOKA_TRY(on_host(i));
  MOKA_TRY(write_states(true));
  std::set<int> taken;
  for (size_t k = 0; k < resolved_.outputs.size(); k++) {
    int i = home(resolved_.outputs[k]);
    if (place(i).type.is_tensor()) i = MOKA_TRY(on_host(i));
    const Place& root = place(place(i).root);
    const bool object = is_object(place(i).type);
    // A list that a loop passes on unchanged stays in place.
    const bool stays = object && k < plan_->inputs.size() && place(i).root == plan_->inputs[k];
    if (own_outputs_ && !stays && (root.storage == Storage::external || !taken.insert(place(i).root).second)) {
      Place copy;
      copy.type = place(i).type;
      if (object) copy.storage = Storage::object;
      const int from = i;
      i = add_place(std::move(copy));
      add_step(Convert{from, i});
    }
    plan_->outputs.push_back(i);
  }
  MOKA_TRY(write_states(false));
  close_region();
  return {};
}

void Arranger::find_planes() {
  const auto is_read = [&](int input) {
    const auto reads = [&](int i) { return place(i).root == input; };
    bool found = !plan_->is_complete() || std::any_of(plan_->outputs.begin(), plan_->outputs.end(), reads);
    for_each_step(*plan_, [&](int, const auto& step, int) {
      const auto in = reads_of(*plan_, step);
      found |=
          std::is_base_of_v<Control, std::remove_cvref_t<decltype(step)>> || std::any_of(in.begin(), in.end(), reads);
    });
    return found;
  };
  for (PixelInput& p : plan_->pixels) p.planes_read = is_read(plan_->inputs[p.input]);
}

Status Arranger::download_all() {
  close_region();
  for (int i = 0; i < static_cast<int>(plan_->places.size()); i++) {
    const Place& p = place(i);
    if (p.device != nullptr && p.storage == Storage::arena && p.value != nullptr && p.value->producer() != nullptr)
      MOKA_TRY(available_in(i, nullptr, p.layout));
  }
  return {};
}

Result<std::shared_ptr<const Plan>> Arranger::run() {
  add_inputs();
  place_states();
  for (size_t k = 0; k < assignment_.order.size(); k++) {
    const auto n = static_cast<size_t>(assignment_.order[k]);
    // A region is submitted as soon as it is complete.
    if (k > 0 && assignment_.region[n] != assignment_.region[static_cast<size_t>(assignment_.order[k - 1])])
      close_region();
    MOKA_TRY(arrange(n));
  }
  if (!resolved_.is_complete()) MOKA_TRY(arrange_pending());
  if (options_.observed) MOKA_TRY(download_all());
  if (resolved_.is_complete()) MOKA_TRY(finish_outputs());
  for (Place& p : plan_->places)
    if (p.storage == Storage::arena && p.type.is_tensor())
      p.bytes = MOKA_TRY(kernel::storage_bytes(p.type.dtype(), p.type.shape(), p.layout));
  if (options_.reuse_buffers) place_parts(*plan_);
  find_lifetimes(*plan_);
  if (options_.reuse_buffers) {
    share_in_place(*plan_);
    find_lifetimes(*plan_);
  }
  find_planes();
  MOKA_TRY(assign_memory(*plan_, options_));
  MOKA_TRY(check(*plan_));
  if (options_.prepare_late && plan_->parent == nullptr) plan_->late = LatePreparation::take(preparations_, options_);
  MOKA_TRY(prepare_kernels(preparations_, options_));
  plan_->folded = count_folded(resolved_);
  const auto has_blocks = [](const Step& s) { return control_of(s) != nullptr; };
  if (plan_->is_complete() && std::none_of(plan_->steps.begin(), plan_->steps.end(), has_blocks))
    plan_->resolved.reset();
  return std::shared_ptr<const Plan>(plan_);
}

}  // namespace moka::plan
