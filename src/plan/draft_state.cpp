// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernel/memory.h"
#include "plan/draft.h"

namespace moka::plan {

bool Drafter::is_by_value(const ir::Value& state) const {
  if (!states_.straight.contains(&state)) return false;
  return std::any_of(state.users().begin(), state.users().end(),
                     [&](const ir::Op* user) { return memory_of(*user) != nullptr; });
}

bool Drafter::by_value(const ResolvedOp& op, std::span<const int> in) {
  if (op.op->type_name() == "write_state") {
    draft_.given[in[0]] = in[1];
    return true;
  }
  const auto given = draft_.given.find(in[0]);
  // A state in host memory is written at the end, when only outputs still read it. A state on a device is written after
  // all of its readers.
  const bool is_resident = place(in[0]).device != nullptr;
  if (given == draft_.given.end() && !is_resident && !states_.views.contains(op.op)) return false;
  const Place& from = place(given == draft_.given.end() ? in[0] : given->second);
  Place p = from;
  p.value = op.op->output();
  p.type = resolved_.at(op.out[0]).type;
  add_place(std::move(p));
  return true;
}

void Drafter::place_states() {
  if (device_of_.empty() || !resolved_.is_complete() || !options_.states_on_devices) return;
  for (int i : values_.inputs) {
    Place& p = place(i);
    if (!p.type.is_state() || !states_.straight.contains(p.value)) continue;
    const ir::Op* first = nullptr;
    for (const auto& op : resolved_.block->ops())
      if (first == nullptr && std::count(p.value->users().begin(), p.value->users().end(), op.get()) > 0)
        first = op.get();
    const Device* device = first == nullptr ? nullptr : memory_of(*first);
    const ir::Type& t = p.type.element();
    // The device must be able to copy the last value to the state without a conversion.
    if (device != nullptr && device->convert(t.dtype(), t.shape(), {}, {}).choice) p.device = device;
  }
}

/// Reads that are views of the state, and writes of a value that is already in the state. They need no step.
bool Drafter::on_state(const ResolvedOp& op, std::span<const int> in) {
  const bool writes = op.op->type_name() == "write_state";
  if (!writes && op.op->type_name() != "read_state") return false;
  if (is_by_value(*place(in[0]).value)) return by_value(op, in);
  if (writes) return place(in[0]).root == place(in[1]).root;
  if (!states_.views.contains(op.op)) return false;
  Place p;
  p.value = op.op->output();
  p.type = resolved_.at(op.out[0]).type;
  p.storage = place(in[0]).storage;
  p.root = place(in[0]).root;
  add_place(std::move(p));
  return true;
}

void Drafter::write_in_state(const ResolvedOp& op, const kernel::KernelChoice& choice, std::span<const int> in,
                             size_t result, int out) {
  const ir::Value* state = states_.state_of(*op.op->output(result));
  const int from = result < choice.updates.size() ? choice.updates[result] : op.out.size() == 1 ? choice.in_place : -1;
  if (state == nullptr || is_by_value(*state) || from < 0) return;
  const Place& x = place(in[static_cast<size_t>(from)]);
  const Place& s = place(home(resolved_.find(state)));
  const auto readers = std::count_if(in.begin(), in.end(), [&](int i) { return place(i).root == s.root; });
  if (x.root != s.root || !(x.type == place(out).type) || readers != 1) return;
  place(out).storage = s.storage;
  place(out).root = s.root;
}

}  // namespace moka::plan
