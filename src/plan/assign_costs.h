// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plan/cost_graph.h"

/// Shared by the parts of `assign`: the graph with its neighbors, and the cost of unit labels.
namespace moka::plan {

using Labels = std::vector<int>;  ///< the unit of each node

/// Lists of integers by key, stored in one array.
class Lists {
 public:
  void build(size_t keys, std::vector<std::pair<int, int>> pairs);
  std::span<const int> operator[](int key) const {
    const auto k = static_cast<size_t>(key);
    return {items_.data() + first_[k], first_[k + 1] - first_[k]};
  }

 private:
  std::vector<size_t> first_;
  std::vector<int> items_;
};

/// Regions for given labels: the fewest launches for up to 24 nodes or a single unit with regions, otherwise few.
struct Regions {
  std::vector<int> of;    ///< node -> region, -1: none
  std::vector<int> unit;  ///< region -> unit, in an order in which regions can be submitted
  double launches = 0;
};

class Costs {
 public:
  /// Errors: internal.
  static Result<Costs> of(const CostGraph& graph);

  const CostGraph& graph() const { return *graph_; }
  int nodes() const { return nodes_; }
  int units() const { return units_; }
  std::span<const int> before(int node) const { return before_[node]; }
  std::span<const int> after(int node) const { return after_[node]; }
  /// The values that a node reads or produces.
  std::span<const int> values(int node) const { return values_[node]; }
  const CostValue& value(int v) const { return graph_->values[static_cast<size_t>(v)]; }
  bool has_regions(int unit) const { return graph_->units[static_cast<size_t>(unit)].regions; }
  double launch(int unit) const { return graph_->units[static_cast<size_t>(unit)].launch; }

  /// Seconds of a node; also kRefused where pins or units do not allow it.
  double compute(int node, int unit) const {
    return compute_[static_cast<size_t>(node) * static_cast<size_t>(units_) + static_cast<size_t>(unit)];
  }
  bool can(int node, int unit) const { return compute(node, unit) < kRefused; }
  double move(int from, int to, double bytes) const {
    if (from == to || graph_->transfers.empty()) return 0;
    return graph_->transfers[static_cast<size_t>(from * units_ + to)].seconds(bytes);
  }
  int maker(int v, const Labels& labels) const {
    const int p = value(v).producer;
    return p < 0 ? 0 : labels[static_cast<size_t>(p)];
  }
  /// Bit u is set when unit u receives the value from the unit that produces it.
  uint64_t readers(int v, const Labels& labels) const;
  double transfers(int v, const Labels& labels) const;

  AssignedCost cost(const Labels& labels, const Regions& regions) const;
  AssignedCost cost(const Labels& labels) const;
  /// Change of compute and transfers when `moved` go to `unit`; kRefused when the unit cannot run one of them.
  AssignedCost change(Labels& labels, std::span<const int> moved, int unit) const;

 private:
  const CostGraph* graph_ = nullptr;
  int nodes_ = 0, units_ = 0;
  std::vector<double> compute_;
  Lists before_, after_, values_;
  mutable std::vector<int> seen_;
  mutable int now_ = 0;
};

Regions find_regions(const Costs& costs, const Labels& labels);
/// Fills GraphAssignment::order and elapsed from units and regions.
void schedule(const Costs& costs, GraphAssignment& out);

/// Lowers the cost of compute, transfers and `launch_share` of a launch for each value that enters a region, as far as
/// cuts between one unit and the others can.
void improve_by_cuts(const Costs& costs, double launch_share, Labels& labels);
/// Lowers the whole cost by moving regions, the nodes between two regions, and single nodes.
void improve_by_moves(const Costs& costs, Labels& labels);
/// Searches all labels for cheaper ones, for at most `steps` steps. Returns false when it did not finish.
bool improve_by_search(const Costs& costs, int steps, Labels& labels);

/// Whether a is less than b by more than rounding.
inline bool is_less(double a, double b) { return a < b - 1e-12 * std::abs(b); }

}  // namespace moka::plan
