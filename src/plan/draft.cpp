// SPDX-License-Identifier: Apache-2.0
#include "plan/draft.h"

namespace moka::plan {

Drafter::Drafter(const Resolved& resolved, const Claims& claims, const Assignment& assignment, const Plan* parent,
                 const PlanOptions& options, bool own_outputs)
    : resolved_(resolved),
      claims_(claims),
      assignment_(assignment),
      parent_(parent),
      options_(options),
      states_(options.reuse_buffers ? resolved.states : kNoStates),
      home_(resolved.values.size(), -1) {
  values_.block = resolved.block;
  values_.own_outputs = own_outputs;
  for (size_t n = 0; n < resolved.ops.size(); n++)
    if (assignment.device[n] != nullptr) device_of_[resolved.ops[n].op] = assignment.device[n];
}

const kernel::Device* Drafter::memory_of(const ir::Op& op) const {
  const auto it = device_of_.find(&op);
  return it == device_of_.end() ? nullptr : it->second;
}

int Drafter::add_place(Place p) {
  int i = static_cast<int>(values_.places.size());
  if (p.root < 0) p.root = i;
  if (Object* object = std::get_if<Object>(&p.storage); object != nullptr && object->index < 0)
    object->index = static_cast<int>(values_.objects++);
  if (p.value != nullptr && values_.place_of.try_emplace(p.value, i).second)
    if (const int value = resolved_.find(p.value); value >= 0) home_[static_cast<size_t>(value)] = i;
  values_.places.push_back(std::move(p));
  return i;
}

int Drafter::add_result(int value, Layout layout) {
  const ResolvedValue& v = resolved_.at(value);
  Place p;
  p.value = v.value;
  p.type = v.type;
  p.layout = layout;
  if (is_object(v.type)) p.storage = Object{};
  return add_place(std::move(p));
}

void Drafter::add_inputs() {
  for (size_t i = 0; i < resolved_.values.size(); i++) {
    const ResolvedValue& v = resolved_.values[i];
    if (v.source != ResolvedValue::Source::input && v.source != ResolvedValue::Source::outer) continue;
    Place p;
    p.value = v.value;
    p.type = v.type;
    p.storage = External{};
    if (v.source == ResolvedValue::Source::input) {
      values_.inputs.push_back(add_place(std::move(p)));
    } else {
      const int outer = parent_->sequence.place_of.at(v.value);
      p.layout = parent_->sequence.place(outer).layout;
      values_.imports.emplace_back(add_place(std::move(p)), outer);
    }
  }
}

int Drafter::home(int value) {
  const int there = home_[static_cast<size_t>(value)];
  if (there >= 0) return there;
  const ResolvedValue& v = resolved_.at(value);
  Place p;
  p.value = v.value;
  p.type = v.type;
  p.storage = Constant{v.constant, nullptr};
  return add_place(std::move(p));
}

std::vector<int> Drafter::homes(std::span<const int> values) {
  std::vector<int> out;
  for (int v : values) out.push_back(home(v));
  return out;
}

int Drafter::prepared(int i) {
  if (auto it = prepared_.find(i); it != prepared_.end()) return it->second;
  Place p;
  p.type = place(i).type;
  p.storage = Prepared{};
  int out = add_place(std::move(p));
  prepared_[i] = out;
  return out;
}

const ir::Value* pooled(const Place& place) {
  const ir::Value* v = place.is<Constant>() ? place.value : nullptr;
  return v != nullptr && ConstantPool::is_constant(*v) ? v : nullptr;
}

Status Drafter::materialize(int i) {
  Place& p = place(i);
  Constant* c = std::get_if<Constant>(&p.storage);
  if (c != nullptr && c->tensor.empty_handle() && p.value->type.is_tensor())
    c->tensor = MOKA_TRY(options_.constants->get(*p.value, true));
  return {};
}

Result<int> Drafter::moved(int i, const Device* device, Layout layout) {
  const bool is_there = place(i).device == device;
  if (device == nullptr && is_there) MOKA_TRY(materialize(i));
  if (is_there && place(i).layout == layout) return i;
  Place p;
  p.type = place(i).type;
  p.layout = layout;
  p.device = device;
  // A device has its own copies of constants.
  if (device != nullptr && place(i).is<Constant>()) p.storage = Constant{};
  const int to = add_place(std::move(p));
  add_step(Relocate{i, to});
  return to;
}

Status Drafter::return_to_host(const ir::Value* v) {
  auto it = values_.place_of.find(v);
  if (it == values_.place_of.end() || place(it->second).device == nullptr) return {};
  it->second = MOKA_TRY(on_host(it->second));
  home_[static_cast<size_t>(resolved_.find(v))] = it->second;
  return {};
}

Status Drafter::draft_control(const ResolvedOp& op) {
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
  for (int v : op.out) step.out.push_back(add_result(v, {}));
  add_step(with_caches<Draft::Step>(std::move(step)));
  return {};
}

Status Drafter::draft_pending() {
  const ResolvedOp& op = *resolved_.pending;
  for (int i : values_.inputs)
    if (place(i).device != nullptr)
      return fail(ErrorCode::internal, "a plan with states in the memory of a device ends at '", op.op->name, "'");
  Control step;
  step.op = op.op;
  step.in = homes(op.in);
  step.first_arg = op.first;
  for (int& i : step.in)
    if (!resolved_.pending_runs_first || place(i).type.is_tensor()) i = MOKA_TRY(on_host(i));
  for (const ir::Value* v : used_from(*values_.block, *op.op)) MOKA_TRY(return_to_host(v));
  if (!resolved_.pending_runs_first)
    values_.pending = Infer{std::move(step)};
  else
    values_.pending = with_caches<Pending>(std::move(step));
  return {};
}

Result<Draft> Drafter::run() {
  add_inputs();
  place_states();
  for (size_t k = 0; k < assignment_.order.size(); k++) {
    const auto n = static_cast<size_t>(assignment_.order[k]);
    const ResolvedOp& op = resolved_.ops[n];
    if (k > 0 && assignment_.region[n] != assignment_.region[static_cast<size_t>(assignment_.order[k - 1])])
      add_step(EndRegion{});
    MOKA_TRY(op.op->has_trait(ir::Trait::control) ? draft_control(op) : draft_call(n));
  }
  if (!resolved_.is_complete()) MOKA_TRY(draft_pending());
  values_.outputs = homes(resolved_.outputs);
  // The second sweep reads these constants on the host.
  for (int i : values_.outputs)
    if (place(i).type.is_tensor() && place(i).device == nullptr) MOKA_TRY(materialize(i));
  for (const auto& [state, given] : draft_.given)
    if (place(state).device == nullptr && place(given).device == nullptr) MOKA_TRY(materialize(given));
  return std::move(draft_);
}

}  // namespace moka::plan
