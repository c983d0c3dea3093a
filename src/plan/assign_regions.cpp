#include <algorithm>
#include <climits>
#include <map>
#include <queue>
#include <set>

#include "plan/assign_costs.h"

namespace moka::plan {

namespace {

constexpr int kExactNodes = 24;

/// The nodes that can run next while regions are closed one after another.
class Front {
 public:
  Front(const Costs& costs, const Labels& labels)
      : costs_(costs), labels_(labels), waits_(labels.size()), ready_(static_cast<size_t>(costs.units())) {
    for (int i = 0; i < costs.nodes(); i++) {
      waits_[static_cast<size_t>(i)] = static_cast<int>(costs.before(i).size());
      if (waits_[static_cast<size_t>(i)] == 0) add(i);
    }
    run_free();
  }

  bool has(int unit) const { return !ready_[static_cast<size_t>(unit)].empty(); }
  /// Runs everything that `unit` can run now, then the nodes that need no region.
  template <class Visit>
  void run(int unit, Visit visit) {
    auto& ready = ready_[static_cast<size_t>(unit)];
    while (!ready.empty()) {
      const int i = ready.back();
      ready.pop_back();
      visit(i);
      done(i);
    }
    run_free();
  }

 private:
  void add(int i) {
    const int unit = labels_[static_cast<size_t>(i)];
    (costs_.has_regions(unit) ? ready_[static_cast<size_t>(unit)] : free_).push_back(i);
  }
  void done(int i) {
    for (int a : costs_.after(i))
      if (--waits_[static_cast<size_t>(a)] == 0) add(a);
  }
  void run_free() {
    while (!free_.empty()) {
      const int i = free_.back();
      free_.pop_back();
      done(i);
    }
  }

  const Costs& costs_;
  const Labels& labels_;
  std::vector<int> waits_, free_;
  std::vector<std::vector<int>> ready_;
};

/// Lets units take turns, each running as much as it can: the fewest regions for one unit.
Regions in_turn(const Costs& costs, const Labels& labels, std::span<const int> turn) {
  Regions r;
  r.of.assign(labels.size(), -1);
  Front front(costs, labels);
  for (size_t k = 0, idle = 0; idle < turn.size(); k = (k + 1) % turn.size()) {
    const int unit = turn[k];
    if (!front.has(unit)) {
      idle++;
      continue;
    }
    idle = 0;
    front.run(unit, [&](int i) { r.of[static_cast<size_t>(i)] = static_cast<int>(r.unit.size()); });
    r.unit.push_back(unit);
    r.launches += costs.launch(unit);
  }
  return r;
}

/// The cheapest order of units, where each runs as much as it can. Visits sets of finished nodes, cheapest first.
Regions exact(const Costs& costs, const Labels& labels, std::span<const int> turn) {
  struct From {
    uint32_t before;
    int unit;
  };
  const auto n = static_cast<size_t>(costs.nodes());
  std::vector<uint32_t> needs(n, 0);
  for (size_t i = 0; i < n; i++)
    for (int b : costs.before(static_cast<int>(i))) needs[i] |= 1u << b;
  const uint32_t all = static_cast<uint32_t>((uint64_t{1} << n) - 1);
  auto run = [&](uint32_t done, auto takes) {
    for (size_t i = 0; i < n; i++)
      if ((done & needs[i]) == needs[i] && takes(labels[i])) done |= 1u << i;
    return done;
  };
  auto run_free = [&](uint32_t done) { return run(done, [&](int unit) { return !costs.has_regions(unit); }); };

  using Open = std::pair<double, uint32_t>;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
  std::map<uint32_t, std::pair<double, From>> best;
  const uint32_t start = run_free(0);
  open.push({0, start});
  best[start] = {0, {0, -1}};
  while (!open.empty() && open.top().second != all) {
    const auto [cost, done] = open.top();
    open.pop();
    if (cost > best[done].first) continue;
    for (int unit : turn) {
      const uint32_t next = run_free(run(done, [&](int u) { return u == unit; }));
      if (next == done) continue;
      const double sum = cost + costs.launch(unit);
      auto [it, is_new] = best.try_emplace(next, sum, From{done, unit});
      if (!is_new && sum >= it->second.first) continue;
      it->second = {sum, {done, unit}};
      open.push({sum, next});
    }
  }
  std::vector<int> order;
  for (uint32_t at = all; best[at].second.unit >= 0; at = best[at].second.before) order.push_back(best[at].second.unit);
  std::reverse(order.begin(), order.end());
  Regions r;
  r.of.assign(n, -1);
  Front front(costs, labels);
  for (int unit : order) {
    front.run(unit, [&](int i) { r.of[static_cast<size_t>(i)] = static_cast<int>(r.unit.size()); });
    r.unit.push_back(unit);
    r.launches += costs.launch(unit);
  }
  return r;
}

}  // namespace

Regions find_regions(const Costs& costs, const Labels& labels) {
  std::set<int> used;
  for (int unit : labels)
    if (costs.has_regions(unit)) used.insert(unit);
  std::vector<int> turn(used.begin(), used.end());
  if (turn.size() > 1 && costs.nodes() <= kExactNodes) return exact(costs, labels, turn);
  Regions best = in_turn(costs, labels, turn);
  for (size_t k = 1; k < turn.size(); k++) {
    std::rotate(turn.begin(), turn.begin() + 1, turn.end());
    if (Regions r = in_turn(costs, labels, turn); r.launches < best.launches) best = std::move(r);
  }
  return best;
}

/// Simulates host and units over time. A region starts as soon as its inputs are available. The host prefers nodes that
/// another region needs, then nodes that wait for no region.
void schedule(const Costs& costs, GraphAssignment& out) {
  const auto n = static_cast<size_t>(costs.nodes());
  const size_t regions = out.regions.size();
  auto item_of = [&](int i) {
    const int r = out.region[static_cast<size_t>(i)];
    return r >= 0 ? static_cast<size_t>(r) : regions + static_cast<size_t>(i);
  };
  // The earliest region that depends on each node.
  std::vector<int> needed(n, INT_MAX);
  for (size_t i = n; i-- > 0;)
    for (int a : costs.after(static_cast<int>(i))) {
      const int r = out.region[static_cast<size_t>(a)];
      needed[i] = std::min(needed[i], r >= 0 && r != out.region[i] ? r : needed[static_cast<size_t>(a)]);
    }
  std::vector<int> waits(regions + n, 0);
  std::vector<double> there(regions + n, 0), ends(regions, 0), seconds(regions, 0), carried(n, 0);
  double time = 0;
  for (const AssignedTransfer& t : out.transfers) {
    const int maker = costs.value(t.value).producer;
    (maker >= 0 ? carried[static_cast<size_t>(maker)] : time) += t.seconds;
  }
  for (size_t i = 0; i < n; i++) {
    const int r = out.region[i];
    if (r >= 0) seconds[static_cast<size_t>(r)] += costs.compute(static_cast<int>(i), out.unit[i]);
    for (int b : costs.before(static_cast<int>(i)))
      waits[item_of(static_cast<int>(i))] += item_of(b) != item_of(static_cast<int>(i));
  }
  using Key = std::tuple<double, bool, int, size_t>;  // earliest start, is not a region, region, item
  std::set<Key> waiting, ready;
  auto push = [&](size_t item) {
    const bool is_region = item < regions;
    const int urgency = is_region ? static_cast<int>(item) : needed[item - regions];
    if (there[item] <= time)
      ready.insert({0, !is_region, urgency, item});
    else
      waiting.insert({there[item], !is_region, urgency, item});
  };
  for (size_t r = 0; r < regions; r++)
    if (waits[r] == 0) push(r);
  for (size_t i = 0; i < n; i++)
    if (out.region[i] < 0 && waits[regions + i] == 0) push(regions + i);
  std::vector<double> unit_free(static_cast<size_t>(costs.units()), 0);
  auto finish = [&](int i) {
    const size_t own = item_of(i);
    for (int a : costs.after(i)) {
      const size_t item = item_of(a);
      if (item == own) continue;
      const int r = out.region[static_cast<size_t>(i)];
      const bool same =
          r >= 0 && item < regions && out.unit[static_cast<size_t>(a)] == out.unit[static_cast<size_t>(i)];
      if (r >= 0 && !same) there[item] = std::max(there[item], ends[static_cast<size_t>(r)]);
      if (--waits[item] == 0) push(item);
    }
  };
  while (!ready.empty() || !waiting.empty()) {
    if (ready.empty()) time = std::max(time, std::get<0>(*waiting.begin()));
    while (!waiting.empty() && std::get<0>(*waiting.begin()) <= time) {
      auto [at, no_region, urgency, item] = *waiting.begin();
      waiting.erase(waiting.begin());
      ready.insert({0, no_region, urgency, item});
    }
    const size_t item = std::get<3>(*ready.begin());
    ready.erase(ready.begin());
    if (item >= regions) {
      const auto i = static_cast<int>(item - regions);
      time += costs.compute(i, out.unit[static_cast<size_t>(i)]) + carried[static_cast<size_t>(i)];
      out.order.push_back(i);
      finish(i);
      continue;
    }
    const AssignedRegion& r = out.regions[item];
    double& free = unit_free[static_cast<size_t>(r.unit)];
    double back = 0;
    for (int i : r.nodes) back += carried[static_cast<size_t>(i)];
    free = ends[item] = std::max(free, time + costs.launch(r.unit)) + seconds[item] + back;
    for (int i : r.nodes) out.order.push_back(i);
    for (int i : r.nodes) finish(i);
  }
  for (double end : ends) time = std::max(time, end);
  out.elapsed = time;
}

}  // namespace moka::plan
