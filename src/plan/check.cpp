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

Status check_memory(const Plan& plan) {
  std::map<const kernel::Device*, std::vector<Live>> live;
  for (size_t i = 0; i < plan.places.size(); i++) {
    const Place& p = plan.places[i];
    if (p.storage == Storage::arena && p.device != plan.places[static_cast<size_t>(p.root)].device)
      return fail(ErrorCode::internal, "place ", i, " shares the bytes of place ", p.root, " in another memory");
    if (p.storage != Storage::arena || p.root != static_cast<int>(i) || p.last < 0 || p.bytes == 0) continue;
    live[p.device].push_back({p.offset, p.offset + p.bytes, p.first, p.last, static_cast<int>(i)});
  }
  for (size_t i = 0; i < plan.steps.size(); i++) {
    const Step& step = plan.steps[i];
    const auto s = static_cast<int>(i);
    if (!step.choice) continue;
    auto& of = live[step.region >= 0 ? step.device : nullptr];
    if (step.choice->scratch > 0)
      of.push_back({step.scratch_offset, step.scratch_offset + step.choice->scratch, s, s, -1});
    if (step.choice->thread_scratch > 0 && step.region < 0)
      of.push_back(
          {step.threads_offset,
           step.threads_offset + plan.thread_step * static_cast<size_t>(step.threads - 1) + step.choice->thread_scratch,
           s, s, -1});
  }
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
enum class RegionState : uint8_t { open, submitted, waited };

class StepChecker {
 public:
  explicit StepChecker(const Plan& plan) : plan_(plan), written_(plan.places.size()), regions_(plan.regions.size()) {
    for (size_t i = 0; i < plan.places.size(); i++) {
      const Storage s = plan.places[i].storage;
      written_[i] = s == Storage::external || s == Storage::constant || s == Storage::prepared;
    }
  }

  Status run() {
    for (size_t s = 0; s < plan_.steps.size(); s++) MOKA_TRY(step(s));
    for (size_t r = 0; r < regions_.size(); r++)
      if (regions_[r] == RegionState::open) return fail(ErrorCode::internal, "region ", r, " is never submitted");
    for (int i : plan_.outputs) {
      if (!is_written(i)) return fail(ErrorCode::internal, "output place ", i, " is never written");
      if (place(i).device != nullptr)
        return fail(ErrorCode::internal, "output place ", i, " is in the memory of '", place(i).device->name(), "'");
    }
    return {};
  }

 private:
  const Place& place(int i) const { return plan_.places[static_cast<size_t>(i)]; }
  bool is_written(int i) const {
    return written_[static_cast<size_t>(i)] || written_[static_cast<size_t>(place(i).root)];
  }

  Status reads(size_t s, const Step& step, size_t i, const kernel::Device* device) const {
    const int p = step.in[i];
    if (!is_written(p)) return fail(ErrorCode::internal, "step ", s, " reads place ", p, " before it is written");
    if (place(p).storage == Storage::prepared || !place(p).type.is_tensor()) return {};
    if (place(p).device != device)
      return fail(ErrorCode::internal, "step ", s, " reads place ", p, " in another memory than it runs in");
    if (step.choice && step.op != nullptr &&
        !(place(p).layout == (i < step.choice->in.size() ? step.choice->in[i] : kernel::Layout{})))
      return fail(ErrorCode::internal, "step ", s, " reads place ", p, " in another layout than it has");
    return {};
  }

  Status step(size_t s) {
    const Step& step = plan_.steps[s];
    RegionState* state = nullptr;
    if (step.region >= 0) {
      if (step.region >= static_cast<int>(regions_.size()))
        return fail(ErrorCode::internal, "step ", s, " belongs to region ", step.region, ", which does not exist");
      state = &regions_[static_cast<size_t>(step.region)];
    }
    const auto expect = [&](RegionState expected, const char* what) -> Status {
      if (state != nullptr && *state == expected) return {};
      return fail(ErrorCode::internal, "step ", s, " ", what);
    };
    const kernel::Device* device = nullptr;
    switch (step.kind) {
      case Step::Kind::submit:
        MOKA_TRY(expect(RegionState::open, "submits a region again"));
        *state = RegionState::submitted;
        return {};
      case Step::Kind::wait:
        MOKA_TRY(expect(RegionState::submitted, "waits for a region that does not run"));
        *state = RegionState::waited;
        return {};
      case Step::Kind::transfer: {
        const Place &from = place(step.in[0]), &to = place(step.out[0]);
        if ((from.device == nullptr) == (to.device == nullptr) || !(from.layout == to.layout))
          return fail(ErrorCode::internal, "step ", s, " transfers place ", step.in[0], " to place ", step.out[0],
                      ", which does not cross memories in one layout");
        MOKA_TRY(to.device != nullptr
                     ? expect(RegionState::open, "uploads to a region that was submitted")
                     : expect(RegionState::waited, "downloads from a region before it was waited for"));
        device = from.device;
        break;
      }
      case Step::Kind::placed: device = step.in.empty() ? nullptr : place(step.out[0]).device; break;
      default:
        if (step.region >= 0) {
          MOKA_TRY(expect(RegionState::open, "belongs to a region that was submitted"));
          device = plan_.regions[static_cast<size_t>(step.region)].device;
        }
    }
    for (size_t i = 0; i < step.in.size(); i++) MOKA_TRY(reads(s, step, i, device));
    for (int i : step.out) {
      if (step.kind != Step::Kind::transfer && place(i).type.is_tensor() && place(i).device != device)
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
  MOKA_TRY(check_memory(plan));
  return StepChecker(plan).run();
}

}  // namespace moka::plan
