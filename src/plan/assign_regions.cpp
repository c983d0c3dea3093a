// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
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

}  // namespace moka::plan
