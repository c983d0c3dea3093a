#include <algorithm>

#include "kernel/memory.h"
#include "plan/arranger.h"

namespace moka::plan {

bool Arranger::is_by_value(const ir::Value& state) const {
  if (!states_.straight.contains(&state)) return false;
  return std::any_of(state.users().begin(), state.users().end(),
                     [&](const ir::Op* user) { return memory_of(*user) != nullptr; });
}

bool Arranger::by_value(const ResolvedOp& op, std::span<const int> in) {
  if (op.op->type_name() == "write_state") {
    given_[in[0]] = in[1];
    return true;
  }
  const auto given = given_.find(in[0]);
  // A state in host memory is written at the end, when only outputs still read it. A state on a device is written after
  // all of its readers.
  const bool is_resident = place(in[0]).device != nullptr;
  if (given == given_.end() && !is_resident && !states_.views.contains(op.op)) return false;
  const Place& from = place(given == given_.end() ? in[0] : given->second);
  Place p = from;
  p.value = op.op->output();
  p.type = resolved_.at(op.out[0]).type;
  add_place(std::move(p));
  return true;
}

void Arranger::place_states() {
  if (device_of_.empty() || !resolved_.is_complete() || !options_.states_on_devices) return;
  for (int i : sequence_.inputs) {
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

void Arranger::copy_on(const Device& device, int from, int to) {
  const int r = region_of(device);
  if (place(to).is<InArena>()) writer_of(to) = r;
  region(r).steps.emplace_back(
      DeviceConvert{from, to, device.convert(place(to).type.dtype(), place(to).type.shape(), {}, {}).choice});
}

Status Arranger::write_states(bool on_devices) {
  const auto copy = [&](int from, int to) {
    if (const Device* device = place(to).device; device != nullptr) return copy_on(*device, from, to);
    add_step(Convert{from, to});
  };
  const auto is_now = [&](int state) { return (place(state).device != nullptr) == on_devices; };
  // Values that are stored in another state are copied out before that state is written.
  for (auto& [state, given] : given_) {
    const int held = place(given).root;
    const bool is_held = held != place(state).root && given_.contains(held);
    if (!is_now(state) && !(is_held && is_now(held))) continue;
    const Device* device = place(state).device;
    given = MOKA_TRY(available_in(given, device, {}));
    const int root = place(given).root;
    if (root == place(state).root || !given_.contains(root)) continue;
    Place p;
    p.type = place(given).type;
    p.device = device;
    const int apart = add_place(std::move(p));
    copy(given, apart);
    given = apart;
  }
  for (auto it = given_.begin(); it != given_.end();) {
    const auto [state, given] = *it;
    if (!is_now(state)) {
      ++it;
      continue;
    }
    it = given_.erase(it);
    if (place(given).root == place(state).root) continue;
    Place p;
    p.type = place(given).type;
    p.device = place(state).device;
    p.storage = place(state).storage;
    p.root = place(state).root;
    copy(given, add_place(std::move(p)));
  }
  return {};
}

/// Reads that are views of the state, and writes of a value that is already in the state. They need no step.
bool Arranger::on_state(const ResolvedOp& op, std::span<const int> in) {
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

void Arranger::write_in_state(const ResolvedOp& op, const kernel::KernelChoice& choice, std::span<const int> in,
                              int out) {
  const ir::Value* state = states_.state_of(*op.op);
  if (state == nullptr || is_by_value(*state) || choice.in_place < 0 || op.out.size() != 1) return;
  const Place& x = place(in[static_cast<size_t>(choice.in_place)]);
  const Place& s = place(home(resolved_.find(state)));
  const auto readers = std::count_if(in.begin(), in.end(), [&](int i) { return place(i).root == s.root; });
  if (x.root != s.root || !(x.type == place(out).type) || readers != 1) return;
  place(out).storage = s.storage;
  place(out).root = s.root;
}

}  // namespace moka::plan
