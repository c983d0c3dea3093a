// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <climits>
#include <set>
#include <tuple>

#include "plan/assign_costs.h"

namespace moka::plan {

namespace {

/// The host and the units over time. An item is a region, or a node that runs on the host.
class Timeline {
 public:
  Timeline(const Costs& costs, const GraphAssignment& assignment)
      : costs_(costs), assignment_(assignment), regions_(assignment.regions.size()) {
    const size_t items = regions_ + static_cast<size_t>(costs.nodes());
    waits_.resize(items);
    there_.resize(items);
    find_needed();
    add_transfers();
    add_nodes();
    for (size_t item = 0; item < items; item++)
      if ((item < regions_ || region_of(node_of(item)) < 0) && waits_[item] == 0) push(item);
  }

  bool is_done() const { return ready_.empty() && waiting_.empty(); }
  /// Runs the next item and appends its nodes.
  void run_next(std::vector<int>& order) {
    const size_t item = pop();
    if (item < regions_)
      submit(item, order);
    else
      compute(node_of(item), order);
  }
  /// When the host and all regions are done.
  double end() const { return ends_.empty() ? time_ : std::max(time_, *std::max_element(ends_.begin(), ends_.end())); }

 private:
  /// Earliest start, is not a region, region, item.
  using Key = std::tuple<double, bool, int, size_t>;

  int region_of(int node) const { return assignment_.region[static_cast<size_t>(node)]; }
  int unit_of(int node) const { return assignment_.unit[static_cast<size_t>(node)]; }
  int node_of(size_t item) const { return static_cast<int>(item - regions_); }
  size_t item_of(int node) const {
    const int r = region_of(node);
    return r >= 0 ? static_cast<size_t>(r) : regions_ + static_cast<size_t>(node);
  }

  void find_needed() {
    needed_.assign(static_cast<size_t>(costs_.nodes()), INT_MAX);
    for (int i = costs_.nodes(); i-- > 0;)
      for (int a : costs_.after(i)) {
        const int r = region_of(a);
        int& own = needed_[static_cast<size_t>(i)];
        own = std::min(own, r >= 0 && r != region_of(i) ? r : needed_[static_cast<size_t>(a)]);
      }
  }
  void add_transfers() {
    carried_.resize(static_cast<size_t>(costs_.nodes()));
    for (const AssignedTransfer& t : assignment_.transfers) {
      const int maker = costs_.value(t.value).producer;
      (maker >= 0 ? carried_[static_cast<size_t>(maker)] : time_) += t.seconds;
    }
  }
  void add_nodes() {
    ends_.resize(regions_);
    seconds_.resize(regions_);
    unit_free_.resize(static_cast<size_t>(costs_.units()));
    for (int i = 0; i < costs_.nodes(); i++) {
      const int r = region_of(i);
      if (r >= 0) seconds_[static_cast<size_t>(r)] += costs_.compute(i, unit_of(i));
      for (int b : costs_.before(i)) waits_[item_of(i)] += item_of(b) != item_of(i);
    }
  }

  void push(size_t item) {
    const bool is_region = item < regions_;
    const int urgency = is_region ? static_cast<int>(item) : needed_[item - regions_];
    if (there_[item] <= time_)
      ready_.insert({0, !is_region, urgency, item});
    else
      waiting_.insert({there_[item], !is_region, urgency, item});
  }
  /// The most urgent item whose inputs are there; the host waits for inputs if it must.
  size_t pop() {
    if (ready_.empty()) time_ = std::max(time_, std::get<0>(*waiting_.begin()));
    while (!waiting_.empty() && std::get<0>(*waiting_.begin()) <= time_) {
      auto [at, no_region, urgency, item] = *waiting_.begin();
      waiting_.erase(waiting_.begin());
      ready_.insert({0, no_region, urgency, item});
    }
    const size_t item = std::get<3>(*ready_.begin());
    ready_.erase(ready_.begin());
    return item;
  }
  void compute(int node, std::vector<int>& order) {
    time_ += costs_.compute(node, unit_of(node)) + carried_[static_cast<size_t>(node)];
    order.push_back(node);
    finish(node);
  }
  /// A region runs beside the host, after the earlier regions of its unit.
  void submit(size_t region, std::vector<int>& order) {
    const AssignedRegion& r = assignment_.regions[region];
    double& free = unit_free_[static_cast<size_t>(r.unit)];
    double back = 0;
    for (int i : r.nodes) back += carried_[static_cast<size_t>(i)];
    free = ends_[region] = std::max(free, time_ + costs_.launch(r.unit)) + seconds_[region] + back;
    for (int i : r.nodes) order.push_back(i);
    for (int i : r.nodes) finish(i);
  }
  void finish(int node) {
    const int r = region_of(node);
    for (int a : costs_.after(node)) {
      const size_t item = item_of(a);
      if (item == item_of(node)) continue;
      const bool same = r >= 0 && item < regions_ && unit_of(a) == unit_of(node);
      if (r >= 0 && !same) there_[item] = std::max(there_[item], ends_[static_cast<size_t>(r)]);
      if (--waits_[item] == 0) push(item);
    }
  }

  const Costs& costs_;
  const GraphAssignment& assignment_;
  const size_t regions_;
  double time_ = 0;                ///< of the host
  std::vector<int> needed_;        ///< by node: the earliest region that depends on it
  std::vector<double> carried_;    ///< by node: seconds of the transfers of its results
  std::vector<double> seconds_;    ///< by region: what its nodes take
  std::vector<double> ends_;       ///< by region
  std::vector<double> unit_free_;  ///< by unit: when its last region ends
  std::vector<int> waits_;         ///< by item: results that it still waits for
  std::vector<double> there_;      ///< by item: when its inputs are there
  std::set<Key> waiting_, ready_;
};

}  // namespace

/// A region starts as soon as its inputs are available. The host prefers nodes that another region needs, then nodes
/// that wait for no region.
void schedule(const Costs& costs, GraphAssignment& out) {
  Timeline timeline(costs, out);
  while (!timeline.is_done()) timeline.run_next(out.order);
  out.elapsed = timeline.end();
}

}  // namespace moka::plan
