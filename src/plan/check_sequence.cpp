#include "plan/sequence.h"

namespace moka::plan {

namespace {

/// Every step names a region, an upload or a download that exists.
Status check_regions(const Sequence& sequence) {
  for (size_t s = 0; s < sequence.steps.size(); s++) {
    Status status;
    std::visit(
        [&]<class One>(const One& step) {
          if constexpr (requires { step.region; }) {
            if (step.region < 0 || step.region >= static_cast<int>(sequence.regions.size())) {
              status = fail(ErrorCode::internal, "the host's step ", s, " names region ", step.region,
                            ", which does not exist");
              return;
            }
            if constexpr (std::is_same_v<One, Upload>)
              if (step.index >= sequence.region(step.region).uploads.size())
                status = fail(ErrorCode::internal, "region ", step.region, " has no upload ", step.index);
            if constexpr (std::is_same_v<One, Download>)
              if (step.index >= sequence.region(step.region).downloads.size())
                status = fail(ErrorCode::internal, "region ", step.region, " has no download ", step.index);
          }
        },
        sequence.steps[s]);
    MOKA_TRY(std::move(status));
  }
  return {};
}

/// Every place that a step, an input, an output or another place names is there.
Status check_places(const Sequence& sequence) {
  const auto exists = [&](int i) { return i >= 0 && i < static_cast<int>(sequence.places.size()); };
  for (size_t i = 0; i < sequence.places.size(); i++)
    if (const int root = sequence.places[i].root; !exists(root) || sequence.place(root).root != root)
      return fail(ErrorCode::internal, "place ", i, " is part of place ", root, ", which has no storage of its own");
  Status status;
  const auto expect = [&](const auto& what, std::span<const int> places) {
    for (int i : places)
      if (status.ok() && !exists(i))
        status = fail(ErrorCode::internal, what, " names place ", i, ", which does not exist");
  };
  expect("an input", sequence.inputs);
  expect("an output", sequence.outputs);
  if (sequence.pending) expect("the end", call_of(*sequence.pending)->in);
  for_each_step(sequence, [&](int s, const auto& step, int) {
    expect(cat("step ", s), reads_of(sequence, step));
    expect(cat("step ", s), writes_of(sequence, step));
  });
  return status;
}

/// The state of a region before a step.
enum class RegionState : uint8_t { open, launched, waited };

class StepChecker {
 public:
  explicit StepChecker(const Sequence& sequence)
      : sequence_(sequence), written_(sequence.places.size()), regions_(sequence.regions.size()) {
    for (size_t i = 0; i < sequence.places.size(); i++) {
      const Place& p = sequence.places[i];
      written_[i] = p.is<External>() || p.is<Constant>() || p.is<Prepared>();
    }
  }

  Status run() {
    Status status;
    for_each_step(sequence_, [&](int s, const auto& step, int region) {
      if (status.ok()) status = check_step(s, step, region);
    });
    MOKA_TRY(std::move(status));
    for (size_t r = 0; r < regions_.size(); r++)
      if (regions_[r] == RegionState::open) return fail(ErrorCode::internal, "region ", r, " is never launched");
    for (int i : sequence_.outputs) {
      if (!is_written(i)) return fail(ErrorCode::internal, "output place ", i, " is never written");
      if (place(i).device != nullptr)
        return fail(ErrorCode::internal, "output place ", i, " is in the memory of '", place(i).device->name(), "'");
    }
    return {};
  }

 private:
  const Place& place(int i) const { return sequence_.place(i); }
  const Region& region(int r) const { return sequence_.region(r); }
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
    if (place(p).is<Prepared>() || !place(p).type.is_tensor() || place(p).device == device) return {};
    return fail(ErrorCode::internal, "step ", s, " reads place ", p, " in another memory than it runs in");
  }

  Status check_layouts(int s, const KernelCall& step) const {
    for (size_t i = 0; i < step.in.size() && step.choice != nullptr; i++) {
      const Place& p = place(step.in[i]);
      if (p.is<Prepared>() || !p.type.is_tensor() ||
          p.layout == (i < step.choice->in.size() ? step.choice->in[i] : kernel::Layout{}))
        continue;
      return fail(ErrorCode::internal, "step ", s, " reads place ", step.in[i], " in another layout than it has");
    }
    return {};
  }

  template <class One>
  Status check_step(int s, const One& step, int r) {
    constexpr bool crosses = std::is_same_v<One, Upload> || std::is_same_v<One, Download>;
    const auto reads = reads_of(sequence_, step), writes = writes_of(sequence_, step);
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

  const Sequence& sequence_;
  std::vector<bool> written_;
  std::vector<RegionState> regions_;
};

}  // namespace

Status check(const Sequence& sequence) {
  MOKA_TRY(check_regions(sequence));
  MOKA_TRY(check_places(sequence));
  return StepChecker(sequence).run();
}

}  // namespace moka::plan
