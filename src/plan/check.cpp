#include <algorithm>
#include <map>

#include "kernel/memory.h"
#include "plan/plan.h"

namespace moka::plan {

namespace {

constexpr size_t kAlignment = 64;

/// Every step names a region, an upload or a download that exists.
Status check_regions(const Plan& plan) {
  for (size_t s = 0; s < plan.steps.size(); s++) {
    Status status;
    std::visit(
        [&]<class One>(const One& step) {
          if constexpr (requires { step.region; }) {
            if (step.region < 0 || step.region >= static_cast<int>(plan.regions.size())) {
              status = fail(ErrorCode::internal, "the host's step ", s, " names region ", step.region,
                            ", which does not exist");
              return;
            }
            if constexpr (std::is_same_v<One, Upload>)
              if (step.index >= plan.regions[static_cast<size_t>(step.region)].uploads.size())
                status = fail(ErrorCode::internal, "region ", step.region, " has no upload ", step.index);
            if constexpr (std::is_same_v<One, Download>)
              if (step.index >= plan.regions[static_cast<size_t>(step.region)].downloads.size())
                status = fail(ErrorCode::internal, "region ", step.region, " has no download ", step.index);
          }
        },
        plan.steps[s]);
    MOKA_TRY(std::move(status));
  }
  return {};
}

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

Status check_memory(const Plan& plan) {
  std::map<const kernel::Device*, std::vector<Live>> live;
  for (size_t i = 0; i < plan.places.size(); i++) {
    const Place& p = plan.places[i];
    if (p.storage == Storage::arena && p.device != plan.places[static_cast<size_t>(p.root)].device)
      return fail(ErrorCode::internal, "place ", i, " shares the bytes of place ", p.root, " in another memory");
    if (p.storage != Storage::arena || p.root != static_cast<int>(i) || p.last < 0 || p.bytes == 0) continue;
    live[p.device].push_back({p.offset, p.offset + p.bytes, p.first, p.last, static_cast<int>(i)});
  }
  for_each_step(plan, [&]<class One>(int s, const One& step, int region) {
    if constexpr (std::is_same_v<One, Run>) {
      auto& of = live[region >= 0 ? step.device : nullptr];
      if (step.choice->scratch > 0)
        of.push_back({step.scratch_offset, step.scratch_offset + step.choice->scratch, s, s, -1});
      if (step.choice->thread_scratch > 0 && region < 0)
        of.push_back({step.threads_offset,
                      step.threads_offset + plan.thread_step * static_cast<size_t>(step.threads - 1) +
                          step.choice->thread_scratch,
                      s, s, -1});
    }
  });
  for (auto& [device, stretches] : live) {
    size_t bytes = plan.arena_bytes;
    if (device != nullptr) {
      auto arena = std::find_if(plan.device_arenas.begin(), plan.device_arenas.end(),
                                [&, d = device](const DeviceArena& a) { return a.device == d; });
      if (arena == plan.device_arenas.end())
        return fail(ErrorCode::internal, "places in the memory of '", device->name(), "' have no arena");
      bytes = arena->bytes;
    }
    MOKA_TRY(check_arena(std::move(stretches), device == nullptr ? kAlignment : device->memory()->alignment(), bytes));
  }
  return {};
}

/// The state of a region before a step.
enum class RegionState : uint8_t { open, launched, waited };

class StepChecker {
 public:
  explicit StepChecker(const Plan& plan) : plan_(plan), written_(plan.places.size()), regions_(plan.regions.size()) {
    for (size_t i = 0; i < plan.places.size(); i++) {
      const Storage s = plan.places[i].storage;
      written_[i] = s == Storage::external || s == Storage::constant || s == Storage::prepared;
    }
  }

  Status run() {
    Status status;
    for_each_step(plan_, [&](int s, const auto& step, int region) {
      if (status.ok()) status = check_step(s, step, region);
    });
    MOKA_TRY(std::move(status));
    for (size_t r = 0; r < regions_.size(); r++)
      if (regions_[r] == RegionState::open) return fail(ErrorCode::internal, "region ", r, " is never launched");
    for (int i : plan_.outputs) {
      if (!is_written(i)) return fail(ErrorCode::internal, "output place ", i, " is never written");
      if (place(i).device != nullptr)
        return fail(ErrorCode::internal, "output place ", i, " is in the memory of '", place(i).device->name(), "'");
    }
    return {};
  }

 private:
  const Place& place(int i) const { return plan_.places[static_cast<size_t>(i)]; }
  const Region& region(int r) const { return plan_.regions[static_cast<size_t>(r)]; }
  bool is_written(int i) const {
    return written_[static_cast<size_t>(i)] || written_[static_cast<size_t>(place(i).root)];
  }

  Status expect(int s, int region, RegionState expected, const char* what) const {
    if (regions_[static_cast<size_t>(region)] == expected) return {};
    return fail(ErrorCode::internal, "step ", s, " ", what);
  }

  Status check_state(int s, const Launch& step) {
    MOKA_TRY(expect(s, step.region, RegionState::open, "launches a region again"));
    regions_[static_cast<size_t>(step.region)] = RegionState::launched;
    return {};
  }
  Status check_state(int s, const Wait& step) {
    MOKA_TRY(expect(s, step.region, RegionState::launched, "waits for a region that does not run"));
    regions_[static_cast<size_t>(step.region)] = RegionState::waited;
    return {};
  }
  Status check_state(int s, const Upload& step) const {
    MOKA_TRY(expect(s, step.region, RegionState::open, "uploads to a region that was launched"));
    return check_crossing(s, region(step.region).uploads[step.index]);
  }
  Status check_state(int s, const Download& step) const {
    MOKA_TRY(expect(s, step.region, RegionState::waited, "downloads from a region before it was waited for"));
    return check_crossing(s, region(step.region).downloads[step.index]);
  }

  Status check_crossing(int s, const Crossing& c) const {
    const Place &from = place(c.from), &to = place(c.to);
    if ((from.device == nullptr) != (to.device == nullptr) && from.layout == to.layout) return {};
    return fail(ErrorCode::internal, "step ", s, " transfers place ", c.from, " to place ", c.to,
                ", which does not cross memories in one layout");
  }

  Status check_read(int s, int p, const kernel::Device* device) const {
    if (!is_written(p)) return fail(ErrorCode::internal, "step ", s, " reads place ", p, " before it is written");
    if (place(p).storage == Storage::prepared || !place(p).type.is_tensor() || place(p).device == device) return {};
    return fail(ErrorCode::internal, "step ", s, " reads place ", p, " in another memory than it runs in");
  }

  Status check_layouts(int s, const KernelCall& step) const {
    for (size_t i = 0; i < step.in.size() && step.choice != nullptr; i++) {
      const Place& p = place(step.in[i]);
      if (p.storage == Storage::prepared || !p.type.is_tensor() ||
          p.layout == (i < step.choice->in.size() ? step.choice->in[i] : kernel::Layout{}))
        continue;
      return fail(ErrorCode::internal, "step ", s, " reads place ", step.in[i], " in another layout than it has");
    }
    return {};
  }

  template <class One>
  Status check_step(int s, const One& step, int r) {
    constexpr bool crosses = std::is_same_v<One, Upload> || std::is_same_v<One, Download>;
    const auto reads = reads_of(plan_, step), writes = writes_of(plan_, step);
    const kernel::Device* device = r < 0 ? nullptr : region(r).device;
    if constexpr (requires { step.region; }) MOKA_TRY(check_state(s, step));
    if constexpr (crosses) device = place(reads[0]).device;
    if constexpr (std::is_same_v<One, Placed>) device = writes.empty() ? nullptr : place(writes[0]).device;
    for (int i : reads) MOKA_TRY(check_read(s, i, device));
    if constexpr (std::is_base_of_v<KernelCall, One>) MOKA_TRY(check_layouts(s, step));
    for (int i : writes) {
      if (!crosses && place(i).type.is_tensor() && place(i).device != device)
        return fail(ErrorCode::internal, "step ", s, " writes place ", i, " in another memory than it runs in");
      written_[static_cast<size_t>(i)] = written_[static_cast<size_t>(place(i).root)] = true;
    }
    return {};
  }

  const Plan& plan_;
  std::vector<bool> written_;
  std::vector<RegionState> regions_;
};

}  // namespace

Status check(const Plan& plan) {
  MOKA_TRY(check_regions(plan));
  MOKA_TRY(check_memory(plan));
  return StepChecker(plan).run();
}

}  // namespace moka::plan
