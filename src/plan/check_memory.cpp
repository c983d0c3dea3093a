// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "kernel/memory.h"
#include "plan/plan.h"

namespace moka::plan {

namespace {

constexpr size_t kAlignment = 64;

/// A range of an arena and the steps that use it.
struct Live {
  size_t begin, end;
  int first, last, place;  ///< place: -1 for scratch
};

Status check_arena(std::vector<Live> live, size_t alignment, size_t bytes) {
  for (const Live& l : live)
    if (l.place >= 0 && (l.begin % alignment != 0 || l.end > bytes))
      return fail(ErrorCode::internal, "place ", l.place, " at ", l.begin, " + ", l.end - l.begin,
                  " is outside of the arena of ", bytes);
  std::sort(live.begin(), live.end(), [](const Live& a, const Live& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < live.size(); i++)
    for (size_t j = i + 1; j < live.size() && live[j].begin < live[i].end; j++)
      if (live[i].first <= live[j].last && live[j].first <= live[i].last)
        return fail(ErrorCode::internal, "places ", live[i].place, " and ", live[j].place,
                    " overlap in the arena during steps ", std::max(live[i].first, live[j].first), " to ",
                    std::min(live[i].last, live[j].last));
  return {};
}

Status check_sizes(const Sequence& sequence, const Memory& memory) {
  if (memory.places.size() == sequence.places.size() &&
      memory.steps.size() == static_cast<size_t>(count_steps(sequence)))
    return {};
  return fail(ErrorCode::internal, "memory of ", memory.places.size(), " places and ", memory.steps.size(),
              " steps for a sequence of ", sequence.places.size(), " and ", count_steps(sequence));
}

Status check_arenas(const Sequence& sequence, const Memory& memory) {
  std::map<const kernel::Device*, std::vector<Live>> live;
  for (size_t i = 0; i < sequence.places.size(); i++) {
    const Place& p = sequence.places[i];
    const Extent& e = memory.places[i];
    if (p.is<InArena>() && p.device != sequence.place(p.root).device)
      return fail(ErrorCode::internal, "place ", i, " shares the bytes of place ", p.root, " in another memory");
    if (!p.is<InArena>() || p.root != static_cast<int>(i) || e.life.last < 0 || e.bytes == 0) continue;
    live[p.device].push_back({e.offset, e.offset + e.bytes, e.life.first, e.life.last, static_cast<int>(i)});
  }
  for_each_step(sequence, [&]<class One>(int s, const One& step, int region) {
    if constexpr (std::is_same_v<One, Run>) {
      const Scratch& scratch = memory.steps[static_cast<size_t>(s)];
      const kernel::KernelChoice& choice = *step.choice;
      auto& of = live[region >= 0 ? step.device : nullptr];
      if (choice.scratch > 0) of.push_back({scratch.own, scratch.own + choice.scratch, s, s, -1});
      if (choice.thread_scratch > 0 && region < 0) {
        const size_t others = memory.thread_step * static_cast<size_t>(step.threads - 1);
        of.push_back({scratch.threads, scratch.threads + others + choice.thread_scratch, s, s, -1});
      }
    }
  });
  for (auto& [device, stretches] : live) {
    size_t bytes = memory.arena_bytes;
    if (device != nullptr) {
      auto arena = std::find_if(memory.devices.begin(), memory.devices.end(),
                                [&, d = device](const DeviceArena& a) { return a.device == d; });
      if (arena == memory.devices.end())
        return fail(ErrorCode::internal, "places in the memory of '", device->name(), "' have no arena");
      bytes = arena->bytes;
    }
    MOKA_TRY(check_arena(std::move(stretches), device == nullptr ? kAlignment : device->memory()->alignment(), bytes));
  }
  return {};
}

}  // namespace

Status check(const Sequence& sequence, const Memory& memory) {
  MOKA_TRY(check_sizes(sequence, memory));
  return check_arenas(sequence, memory);
}

}  // namespace moka::plan
