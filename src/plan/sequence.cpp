// SPDX-License-Identifier: Apache-2.0
#include "plan/sequence.h"

#include "kernel/device.h"

namespace moka::plan {

size_t bytes_of(const Place& place) {
  if (!place.type.is_tensor()) return 0;
  const auto n = kernel::storage_bytes(place.type.dtype(), place.type.shape(), place.layout);
  return n.ok() ? *n : 0;
}

std::string refusal_of(const KernelCall& call, const kernel::Device& device) {
  for (const Refusal& r : call.refusals)
    if (r.device == device.name()) return r.reason;
  if (call.bids)
    for (const Bid& b : *call.bids)
      if (b.device == &device) return b.refusal;
  return {};
}

std::vector<const RegionStep*> computed_steps(const Region& region) {
  std::vector<const RegionStep*> out;
  for (const RegionStep& step : region.steps)
    if (!std::holds_alternative<Placed>(step)) out.push_back(&step);
  return out;
}

int count_steps(const Sequence& sequence) {
  size_t count = sequence.steps.size();
  for (const Region& r : sequence.regions) count += r.steps.size();
  return static_cast<int>(count);
}

std::vector<ir::Type> Sequence::output_types() const {
  std::vector<ir::Type> t;
  for (int i : outputs) t.push_back(place(i).type);
  return t;
}

bool is_state_store(const Sequence& sequence, const DeviceConvert& step) {
  const Place& to = sequence.place(step.to);
  return to.is<External>() && to.device != nullptr;
}

CopiedValues::CopiedValues(const Sequence& sequence) : sequence_(sequence), from_(sequence.places.size(), -1) {
  for_each_step(sequence, [&]<class One>(int, const One& step, int) {
    if constexpr (!std::is_base_of_v<Call, One>)
      for (int i : writes_of(sequence, step)) from_[static_cast<size_t>(i)] = reads_of(sequence, step)[0];
  });
  for (const PixelInput& p : sequence.pixels) from_[static_cast<size_t>(p.place)] = sequence.inputs[p.input];
}

const ir::Value* CopiedValues::of(int place) const {
  while (place >= 0 && sequence_.place(place).value == nullptr) place = from_[static_cast<size_t>(place)];
  return place < 0 ? nullptr : sequence_.place(place).value;
}

}  // namespace moka::plan
