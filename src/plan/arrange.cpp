#include <algorithm>
#include <set>

#include "plan/arranger.h"

namespace moka::plan {

Arranger::Arranger(const Resolved& resolved, const Claims& claims, const Assignment& assignment, const Plan* parent,
                   const PlanOptions& options, bool own_outputs)
    : resolved_(resolved),
      claims_(claims),
      assignment_(assignment),
      parent_(parent),
      options_(options),
      states_(options.reuse_buffers ? resolved.states : kNoStates),
      home_(resolved.values.size(), -1) {
  sequence_.block = resolved.block;
  sequence_.own_outputs = own_outputs;
  for (size_t n = 0; n < resolved.ops.size(); n++)
    if (assignment.device[n] != nullptr) device_of_[resolved.ops[n].op] = assignment.device[n];
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
  for (int i : sequence_.inputs)
    if (place(i).device != nullptr)
      return fail(ErrorCode::internal, "a plan with states in the memory of a device ends at '", op.op->name, "'");
  Control step;
  step.op = op.op;
  step.in = homes(op.in);
  step.first_arg = op.first;
  for (int& i : step.in)
    if (!resolved_.pending_runs_first || place(i).type.is_tensor()) i = MOKA_TRY(on_host(i));
  for (const ir::Value* v : used_from(*sequence_.block, *op.op)) MOKA_TRY(return_to_host(v));
  MOKA_TRY(write_states(false));
  close_region();
  if (!resolved_.pending_runs_first)
    sequence_.pending = Infer{std::move(step)};
  else
    sequence_.pending = with_caches<Pending>(std::move(step));
  return {};
}

Status Arranger::finish_outputs() {
  // The old content of states is read before the states are written.
  for (int v : resolved_.outputs)
    if (const int i = home(v); place(i).device != nullptr && place(i).is<External>()) MOKA_TRY(on_host(i));
  MOKA_TRY(write_states(true));
  std::set<int> taken;
  for (size_t k = 0; k < resolved_.outputs.size(); k++) {
    int i = home(resolved_.outputs[k]);
    if (place(i).type.is_tensor()) i = MOKA_TRY(on_host(i));
    const Place& root = place(place(i).root);
    const bool object = is_object(place(i).type);
    // A list that a loop passes on unchanged stays in place.
    const bool stays = object && k < sequence_.inputs.size() && place(i).root == sequence_.inputs[k];
    if (sequence_.own_outputs && !stays && (root.is<External>() || !taken.insert(place(i).root).second)) {
      Place copy;
      copy.type = place(i).type;
      if (object) copy.storage = Object{};
      const int from = i;
      i = add_place(std::move(copy));
      add_step(Convert{from, i});
    }
    sequence_.outputs.push_back(i);
  }
  MOKA_TRY(write_states(false));
  close_region();
  return {};
}

void Arranger::find_planes() {
  const auto is_read = [&](int input) {
    const auto reads = [&](int i) { return place(i).root == input; };
    bool found = !sequence_.is_complete() || std::any_of(sequence_.outputs.begin(), sequence_.outputs.end(), reads);
    for_each_step(sequence_, [&](int, const auto& step, int) {
      const auto in = reads_of(sequence_, step);
      found |=
          std::is_base_of_v<Control, std::remove_cvref_t<decltype(step)>> || std::any_of(in.begin(), in.end(), reads);
    });
    return found;
  };
  for (PixelInput& p : sequence_.pixels) p.planes_read = is_read(sequence_.inputs[p.input]);
}

Status Arranger::download_all() {
  close_region();
  for (int i = 0; i < static_cast<int>(sequence_.places.size()); i++) {
    const Place& p = place(i);
    if (p.device != nullptr && p.is<InArena>() && p.value != nullptr && p.value->producer() != nullptr)
      MOKA_TRY(available_in(i, nullptr, p.layout));
  }
  return {};
}

Result<Arranged> Arranger::run() {
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
  if (options_.reuse_buffers) {
    place_parts(sequence_);
    share_in_place(sequence_);
  }
  find_planes();
  return Arranged{std::move(sequence_), std::move(preparations_)};
}

Result<Arranged> arrange(const Resolved& resolved, const Claims& claims, const Assignment& assignment,
                         const Plan* parent, const PlanOptions& options, bool own_outputs) {
  return Arranger(resolved, claims, assignment, parent, options, own_outputs).run();
}

}  // namespace moka::plan
