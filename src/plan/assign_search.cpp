// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "plan/assign_costs.h"

namespace moka::plan {

namespace {

/// Depth-first search over the nodes in order. The lower bound of a partial assignment adds the cheapest unit of each
/// remaining node, and a launch for each path that leaves a unit and returns.
class Search {
 public:
  Search(const Costs& costs, int steps, Labels& best)
      : costs_(costs), steps_(steps), best_(best), labels_(best.size(), -1), got_(costs.graph().values.size(), 0) {
    const int n = costs.nodes(), units = costs.units();
    least_ = costs.cost(best).total();
    rest_.assign(static_cast<size_t>(n) + 1, 0);
    for (int i = n - 1; i >= 0; i--) {
      double least = kRefused;
      for (int u = 0; u < units; u++) least = std::min(least, costs.compute(i, u));
      rest_[static_cast<size_t>(i)] = rest_[static_cast<size_t>(i) + 1] + least;
    }
    runs_.assign(static_cast<size_t>(n) * static_cast<size_t>(units), 0);
    most_.assign(static_cast<size_t>(units), 0);
    for (size_t v = 0; v < got_.size(); v++)
      if (costs.value(static_cast<int>(v)).producer < 0) got_[v] = 1;  // the host produced it
  }

  bool run() {
    visit(0, 0);
    return steps_ > 0;
  }

 private:
  int& runs(int node, int unit) { return runs_[static_cast<size_t>(node * costs_.units() + unit)]; }

  void visit(int i, double spent) {
    if (steps_ <= 0) return;
    steps_--;
    if (i == costs_.nodes()) {
      const double total = costs_.cost(labels_).total();
      if (is_less(total, least_)) {
        least_ = total;
        best_ = labels_;
      }
      return;
    }
    for (int unit = 0; unit < costs_.units(); unit++) {
      if (!costs_.can(i, unit)) continue;
      const std::vector<int> most = most_;
      const size_t undo = undo_.size();
      labels_[static_cast<size_t>(i)] = unit;
      const double now = spent + costs_.compute(i, unit) + arrive(i, unit);
      double launches = 0;
      for (int u = 0; u < costs_.units(); u++) {
        if (!costs_.has_regions(u)) continue;
        int& r = runs(i, u) = u == unit;
        for (int b : costs_.before(i))
          r = std::max(r, runs(b, u) + (u == unit && labels_[static_cast<size_t>(b)] != unit));
        most_[static_cast<size_t>(u)] = std::max(most_[static_cast<size_t>(u)], r);
        launches += most_[static_cast<size_t>(u)] * costs_.launch(u);
      }
      if (is_less(now + launches + rest_[static_cast<size_t>(i) + 1], least_)) visit(i + 1, now);
      most_ = most;
      for (; undo_.size() > undo; undo_.pop_back()) got_[undo_.back().first] = undo_.back().second;
    }
    labels_[static_cast<size_t>(i)] = -1;
  }

  /// Seconds of the transfers that are already certain.
  double arrive(int i, int unit) {
    double seconds = 0;
    auto get = [&](int v, int from, int to) {
      uint64_t& got = got_[static_cast<size_t>(v)];
      if ((got >> to & 1) != 0) return;
      undo_.emplace_back(static_cast<size_t>(v), got);
      got |= uint64_t{1} << to;
      seconds += costs_.move(from, to, costs_.value(v).bytes);
    };
    for (int v : costs_.values(i)) {
      const CostValue& value = costs_.value(v);
      if (value.producer != i) {
        get(v, costs_.maker(v, labels_), unit);
        continue;
      }
      get(v, unit, unit);
      if (value.output) get(v, unit, 0);
    }
    return seconds;
  }

  const Costs& costs_;
  int steps_;
  Labels& best_;
  Labels labels_;
  std::vector<uint64_t> got_;  ///< bit u: unit u has the value
  std::vector<std::pair<size_t, uint64_t>> undo_;
  std::vector<double> rest_;
  std::vector<int> runs_, most_;
  double least_ = 0;
};

}  // namespace

bool improve_by_search(const Costs& costs, int steps, Labels& labels) { return Search(costs, steps, labels).run(); }

}  // namespace moka::plan
