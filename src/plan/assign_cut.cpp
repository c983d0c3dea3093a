// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "plan/assign_costs.h"
#include "plan/min_cut.h"

namespace moka::plan {

namespace {

/// Upper bound of the sum of capacities.
constexpr double kLargestSum = 1e15;

/// A cut between nodes that move to `unit` (the sink's side) and nodes that keep their unit. Exact for two units. With
/// more units, a value that a move makes cheaper still counts at its old cost.
class Expansion {
 public:
  Expansion(const Costs& costs, double launch_share, const Labels& labels, int unit, double scale)
      : costs_(costs), share_(launch_share), labels_(labels), unit_(unit), scale_(scale) {
    for (int i = 0; i < costs.nodes(); i++)
      node_.push_back(labels[static_cast<size_t>(i)] == unit ? kSink : cut_.node());
    for (int i = 0; i < costs.nodes(); i++) {
      const int own = labels[static_cast<size_t>(i)];
      if (own == unit) continue;
      cut_.from_source(node_[static_cast<size_t>(i)], capacity(costs.compute(i, unit)));
      cut_.to_sink(node_[static_cast<size_t>(i)], capacity(costs.compute(i, own)));
    }
    for (size_t v = 0; v < costs.graph().values.size(); v++) add_value(static_cast<int>(v));
  }

  Labels solve() {
    cut_.solve();
    Labels out = labels_;
    for (size_t i = 0; i < out.size(); i++)
      if (node_[i] == kSink || !cut_.with_source(node_[i])) out[i] = unit_;
    return out;
  }

 private:
  static constexpr int kSource = 0, kSink = 1;

  int64_t capacity(double seconds) const {
    return seconds == kRefused ? MinCut::kNever : static_cast<int64_t>(std::llround(seconds * scale_));
  }
  double price(int from, int to, double bytes) const {
    if (from == to) return 0;
    return costs_.move(from, to, bytes) + (costs_.has_regions(to) ? share_ * costs_.launch(to) : 0);
  }
  /// A node on the source's side when any of `nodes` is.
  int any_kept(std::span<const int> nodes) {
    if (nodes.size() == 1) return nodes[0];
    const int any = cut_.node();
    for (int i : nodes) cut_.add(i, any, MinCut::kNever);
    return any;
  }
  /// A node on the sink's side when any of `nodes` is.
  int any_moved(std::span<const int> nodes) {
    if (nodes.size() == 1) return nodes[0];
    const int any = cut_.node();
    for (int i : nodes) cut_.add(any, i, MinCut::kNever);
    return any;
  }

  void add_value(int v) {
    const CostValue& value = costs_.value(v);
    const int own = costs_.maker(v, labels_);
    const int maker = value.producer >= 0 ? node_[static_cast<size_t>(value.producer)] : own == unit_ ? kSink : kSource;
    std::vector<int> all;
    std::map<int, std::vector<int>> kept;
    auto read = [&](int unit, int node) {
      all.push_back(node);
      if (node != kSink) kept[unit].push_back(node);
    };
    for (int user : value.consumers) read(labels_[static_cast<size_t>(user)], node_[static_cast<size_t>(user)]);
    if (value.output) read(0, unit_ == 0 ? kSink : kSource);
    if (all.empty()) return;
    if (maker != kSink) {
      const bool has_fixed = std::find(all.begin(), all.end(), kSink) != all.end();
      cut_.add(maker, has_fixed ? kSink : any_moved(all), capacity(price(own, unit_, value.bytes)));
    }
    for (const auto& [unit, nodes] : kept) {
      const bool has_fixed = std::find(nodes.begin(), nodes.end(), kSource) != nodes.end();
      const int any = has_fixed ? kSource : any_kept(nodes);
      const double now = maker == kSink ? 0 : price(own, unit, value.bytes), then = price(unit_, unit, value.bytes);
      cut_.add(any, kSink, capacity(now));
      cut_.add(any, maker, capacity(std::max(0.0, then - now)));
    }
  }

  const Costs& costs_;
  double share_;
  const Labels& labels_;
  int unit_;
  double scale_;
  MinCut cut_;
  std::vector<int> node_;
};

}  // namespace

void improve_by_cuts(const Costs& costs, double launch_share, Labels& labels) {
  double sum = 0;
  for (int i = 0; i < costs.nodes(); i++)
    for (int u = 0; u < costs.units(); u++)
      if (costs.can(i, u)) sum += costs.compute(i, u);
  for (size_t v = 0; v < costs.graph().values.size(); v++)
    for (int a = 0; a < costs.units(); a++)
      for (int b = 0; b < costs.units(); b++)
        sum += costs.move(a, b, costs.value(static_cast<int>(v)).bytes) + launch_share * costs.launch(b);
  if (!(sum > 0) || !std::isfinite(sum)) return;
  auto price = [&](const Labels& l) {
    double total = 0;
    for (int i = 0; i < costs.nodes(); i++) total += costs.compute(i, l[static_cast<size_t>(i)]);
    for (size_t v = 0; v < costs.graph().values.size(); v++) {
      total += costs.transfers(static_cast<int>(v), l);
      const uint64_t readers = costs.readers(static_cast<int>(v), l);
      for (int u = 0; u < costs.units(); u++)
        if ((readers >> u & 1) != 0 && costs.has_regions(u)) total += launch_share * costs.launch(u);
    }
    return total;
  };
  constexpr int kRounds = 4;
  double best = price(labels);
  const int units = costs.units();
  for (int round = 0, idle = 0; round < kRounds * units && idle < units; round++) {
    const int unit = (round + 1) % units;
    idle++;
    if (!costs.graph().units[static_cast<size_t>(unit)].allowed) continue;
    Labels moved = Expansion(costs, launch_share, labels, unit, kLargestSum / sum).solve();
    const double now = price(moved);
    if (!is_less(now, best)) continue;
    best = now;
    labels = std::move(moved);
    idle = 0;
  }
}

}  // namespace moka::plan
