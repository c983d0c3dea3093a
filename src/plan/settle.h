// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/draft.h"

/// The second sweep over an assignment. Private to this folder.
///
///     settle.cpp         visits the steps of the draft
///     settle_move.cpp    replaces relocations by conversions and crossings, unless the value is already there
///     settle_states.cpp  stores states
namespace moka::plan {

/// Where a value lies, and how.
struct Spot {
  const kernel::Device* device = nullptr;  ///< nullptr: host memory
  kernel::Layout layout;
  friend auto operator<=>(const Spot&, const Spot&) = default;
};

class Settler {
 public:
  /// `draft` must outlive it.
  Settler(Draft& draft, const PlanOptions& options);

  Result<Sequence> run();

 private:
  using Device = kernel::Device;

  const Place& place(int i) const { return sequence_.place(i); }
  Region& region(int r) { return sequence_.regions[static_cast<size_t>(r)]; }
  int add_place(Place p);
  void add_step(Step s) { sequence_.steps.push_back(std::move(s)); }
  /// Makes the places of the draft before `end` that no relocation has made.
  void settle_until(size_t end);
  /// The place that a place of the draft has become.
  int settled(int draft_place) const { return settled_[static_cast<size_t>(draft_place)]; }
  void settle(std::vector<int>& draft_places) const;
  Status settle(Draft::Entry& entry);
  template <class Kind>
  void add_call(Kind step);
  template <class Kind>
  void add_control(Kind step);
  Status finish_outputs();
  /// Copies everything that devices compute to the host.
  Status download_all();
  /// Finds images whose planes the host does not need.
  void find_planes();

  /// The place of p's value at a spot: one that has it already, or the last of conversions and crossings.
  Result<int> place_at(int p, const Spot& to);
  Result<int> on_host(int p) { return place_at(p, {}); }
  /// The next spot on the way of p's value to another one.
  Result<Spot> next_hop(int p, const Spot& to);
  Result<Spot> next_hop_between(int p, const Spot& to);
  /// Converts p's value in its memory, or moves it to another memory as it is.
  Result<int> hop(int p, const Spot& to);
  Result<int> convert(int p, const Spot& to);
  /// Adds an upload of a value as it is.
  int upload(int p, const Device& device);
  /// Adds an upload to the open region of the device: the place that it fills, and its slot.
  std::pair<int, Slot> add_upload(int p, const Device& device);
  /// How the device unpacks a picture; nullptr: it does not, or the value is not a picture.
  std::unique_ptr<kernel::KernelChoice> unpacking(int p, const Device& device);
  /// Uploads packed pixels and unpacks them.
  int upload_pixels(int p, const Device& device, std::unique_ptr<kernel::KernelChoice> unpacks);
  Result<int> upload_constant(int p, const Spot& to);
  Result<int> download(int p);
  Result<int> transfer(int p, const Device& device);
  /// Where a region gives the value, after a wait for it.
  Result<Slot> result_slot(int p);

  /// Stores the last value that each state was given, for states in the memory of devices or of the host.
  Status write_states(bool on_devices);
  /// Copies given values out that lie in other states, before those change.
  Status copy_given(bool on_devices);
  void copy(int from, int to);

  /// The open region of the device. Opens one if there is none.
  int region_of(const Device& device);
  void close_region();
  /// The region that writes a place; -1: none does.
  int& writer_of(int p) { return written_by_[static_cast<size_t>(place(p).root)]; }

  Draft& draft_;
  const PlanOptions& options_;
  Sequence sequence_;
  std::vector<int> settled_;  ///< by place of the draft, of those that are settled
  std::map<int, int> given_;  ///< as Draft::given
  std::map<std::pair<int, Spot>, int> copies_;
  std::vector<int> written_by_;  ///< by place with its own storage: the region that writes it
  int open_ = -1;                ///< the region that is not launched yet
  std::vector<bool> waited_;     ///< per region
};

}  // namespace moka::plan
