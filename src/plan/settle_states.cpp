// SPDX-License-Identifier: Apache-2.0
#include "plan/settle.h"

namespace moka::plan {

void Settler::copy(int from, int to) {
  const Device* device = place(to).device;
  if (device == nullptr) return add_step(Convert{from, to});
  const int r = region_of(*device);
  if (place(to).is<InArena>()) writer_of(to) = r;
  const ir::Type& type = place(to).type;
  region(r).steps.emplace_back(DeviceConvert{from, to, device->convert(type.dtype(), type.shape(), {}, {}).choice});
}

Status Settler::copy_given(bool on_devices) {
  const auto is_now = [&](int state) { return (place(state).device != nullptr) == on_devices; };
  for (auto& [state, given] : given_) {
    const int held = place(given).root;
    const bool is_held = held != place(state).root && given_.contains(held);
    if (!is_now(state) && !(is_held && is_now(held))) continue;
    given = MOKA_TRY(place_at(given, {place(state).device, {}}));
    const int root = place(given).root;
    if (root == place(state).root || !given_.contains(root)) continue;
    Place p;
    p.type = place(given).type;
    p.device = place(state).device;
    const int apart = add_place(std::move(p));
    copy(given, apart);
    given = apart;
  }
  return {};
}

Status Settler::write_states(bool on_devices) {
  MOKA_TRY(copy_given(on_devices));
  for (auto it = given_.begin(); it != given_.end();) {
    const auto [state, given] = *it;
    if ((place(state).device != nullptr) != on_devices) {
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

}  // namespace moka::plan
