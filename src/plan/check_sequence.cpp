// SPDX-License-Identifier: Apache-2.0
#include "plan/sequence.h"

namespace moka::plan {

namespace {

/// Every step names regions, uploads and downloads that exist.
class RegionChecker {
 public:
  explicit RegionChecker(const Sequence& sequence) : sequence_(sequence) {}

  Status run() {
    for (size_t s = 0; s < sequence_.steps.size(); s++)
      MOKA_TRY(std::visit([&](const auto& step) { return check_step(s, step); }, sequence_.steps[s]));
    return {};
  }

 private:
  template <class One>
  Status check_step(size_t s, const One& step) const {
    if constexpr (requires { step.region; }) MOKA_TRY(check_region(s, step.region));
    if constexpr (std::is_same_v<One, Upload> || std::is_same_v<One, Transfer>) {
      MOKA_TRY(check_region(s, step.to.region));
      if (step.to.index >= sequence_.region(step.to.region).uploads.size())
        return fail(ErrorCode::internal, "region ", step.to.region, " has no upload ", step.to.index);
    }
    if constexpr (std::is_same_v<One, Download> || std::is_same_v<One, Transfer>) {
      MOKA_TRY(check_region(s, step.from.region));
      if (step.from.index >= sequence_.region(step.from.region).downloads.size())
        return fail(ErrorCode::internal, "region ", step.from.region, " has no download ", step.from.index);
    }
    return {};
  }
  Status check_region(size_t s, int region) const {
    if (region >= 0 && region < static_cast<int>(sequence_.regions.size())) return {};
    return fail(ErrorCode::internal, "the host's step ", s, " names region ", region, ", which does not exist");
  }

  const Sequence& sequence_;
};

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
  Status check_upload(int s, const Slot& to) const {
    return expect(s, to.region, RegionState::open, "uploads to a region that was launched");
  }
  Status check_download(int s, const Slot& from) const {
    return expect(s, from.region, RegionState::waited, "downloads from a region before it was waited for");
  }
  Status check_state(int s, const Upload& step) const { return check_upload(s, step.to); }
  Status check_state(int s, const Download& step) const { return check_download(s, step.from); }
  Status check_state(int s, const Transfer& step) const {
    MOKA_TRY(check_download(s, step.from));
    return check_upload(s, step.to);
  }

  Status check_crossing(int s, int from, int to) const {
    if (place(from).device != place(to).device && place(from).layout == place(to).layout) return {};
    return fail(ErrorCode::internal, "step ", s, " transfers place ", from, " to place ", to,
                ", which does not cross memories in one layout");
  }
  /// A value crosses from and to the memories that its step names.
  Status check_ends(int s, int from, int to, const kernel::Device* source, const kernel::Device* target) const {
    if (place(from).device == source && place(to).device == target) return {};
    return fail(ErrorCode::internal, "step ", s, " transfers place ", from, " to place ", to,
                ", which are not in the memories of its regions");
  }
  const kernel::Device* device_of(const Slot& slot) const { return region(slot.region).device; }
  Status check_ends(int s, const Upload& step) const {
    const int to = region(step.to.region).uploads[step.to.index];
    MOKA_TRY(check_crossing(s, step.from, to));
    return check_ends(s, step.from, to, nullptr, device_of(step.to));
  }
  Status check_ends(int s, const Download& step) const {
    const int from = region(step.from.region).downloads[step.from.index];
    MOKA_TRY(check_crossing(s, from, step.to));
    return check_ends(s, from, step.to, device_of(step.from), nullptr);
  }
  Status check_ends(int s, const Transfer& step) const {
    const int from = region(step.from.region).downloads[step.from.index];
    const int to = region(step.to.region).uploads[step.to.index];
    MOKA_TRY(check_crossing(s, from, to));
    return check_ends(s, from, to, device_of(step.from), device_of(step.to));
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
    constexpr bool crosses =
        std::is_same_v<One, Upload> || std::is_same_v<One, Download> || std::is_same_v<One, Transfer>;
    const auto reads = reads_of(sequence_, step), writes = writes_of(sequence_, step);
    const kernel::Device* device = r < 0 ? nullptr : region(r).device;
    if constexpr (crosses || requires { step.region; }) MOKA_TRY(check_state(s, step));
    if constexpr (crosses) {
      MOKA_TRY(check_ends(s, step));
      device = place(reads[0]).device;
    }
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
  MOKA_TRY(RegionChecker(sequence).run());
  MOKA_TRY(check_places(sequence));
  return StepChecker(sequence).run();
}

}  // namespace moka::plan
