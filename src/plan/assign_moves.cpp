// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "plan/assign_costs.h"

namespace moka::plan {

namespace {

constexpr int kPasses = 6;
/// Node visits per pass, since computing the whole cost visits every node.
constexpr int kVisitedNodes = 100'000;

struct Move {
  std::vector<int> nodes;
  int unit;
};

class Moves {
 public:
  Moves(const Costs& costs, Labels& labels) : costs_(costs), labels_(labels), total_(costs.cost(labels).total()) {}

  void run() {
    for (int pass = 0; pass < kPasses; pass++) {
      const double before = total_;
      left_ = std::max(8, kVisitedNodes / std::max(1, costs_.nodes()));
      drop_regions();
      join_regions();
      move_nodes();
      if (!is_less(total_, before)) break;
    }
  }

 private:
  void apply(std::span<const Move> moves) {
    for (const Move& m : moves)
      for (int i : m.nodes) labels_[static_cast<size_t>(i)] = m.unit;
  }

  /// Keeps the moves that help: all at once, or each half separately.
  void keep(std::span<const Move> moves) {
    if (moves.empty() || left_ <= 0) return;
    left_--;
    const Labels before = labels_;
    apply(moves);
    const double total = costs_.cost(labels_).total();
    if (is_less(total, total_)) {
      total_ = total;
      return;
    }
    labels_ = before;
    if (moves.size() == 1) return;
    keep(moves.first(moves.size() / 2));
    keep(moves.subspan(moves.size() / 2));
  }

  std::vector<std::vector<int>> nodes_of(const Regions& regions) const {
    std::vector<std::vector<int>> nodes(regions.unit.size());
    for (int i = 0; i < costs_.nodes(); i++)
      if (const int r = regions.of[static_cast<size_t>(i)]; r >= 0) nodes[static_cast<size_t>(r)].push_back(i);
    return nodes;
  }

  void drop_regions() {
    const Regions regions = find_regions(costs_, labels_);
    const auto nodes = nodes_of(regions);
    std::vector<Move> moves;
    for (size_t r = 0; r < nodes.size(); r++) {
      double least = 0;
      int to = -1;
      for (int unit = 0; unit < costs_.units(); unit++) {
        if (unit == regions.unit[r]) continue;
        const double change = costs_.change(labels_, nodes[r], unit).total() - costs_.launch(regions.unit[r]);
        if (is_less(change, least)) {
          least = change;
          to = unit;
        }
      }
      if (to >= 0) moves.push_back({nodes[r], to});
    }
    keep(moves);
  }

  /// Moves the nodes between two regions of a unit to that unit.
  void join_regions() {
    const Regions regions = find_regions(costs_, labels_);
    const auto nodes = nodes_of(regions);
    const auto n = static_cast<size_t>(costs_.nodes());
    std::vector<int> before(static_cast<size_t>(costs_.units()), -1);
    std::vector<Move> moves;
    std::vector<char> behind(n, 0), ahead(n, 0);
    for (size_t r = 0; r < nodes.size(); r++) {
      const int unit = regions.unit[r];
      const int last = std::exchange(before[static_cast<size_t>(unit)], static_cast<int>(r));
      if (last < 0) continue;
      const auto& from = nodes[static_cast<size_t>(last)];
      const int low = from.front(), high = nodes[r].back();
      for (int i : from) behind[static_cast<size_t>(i)] = 1;
      for (int i : nodes[r]) ahead[static_cast<size_t>(i)] = 1;
      Move m{{}, unit};
      for (int i = low; i <= high; i++)
        for (int b : costs_.before(i)) behind[static_cast<size_t>(i)] |= b >= low && behind[static_cast<size_t>(b)];
      for (int i = high; i >= low; i--)
        for (int a : costs_.after(i)) ahead[static_cast<size_t>(i)] |= a <= high && ahead[static_cast<size_t>(a)];
      for (int i = low; i <= high; i++) {
        const auto k = static_cast<size_t>(i);
        if (behind[k] && ahead[k] && labels_[k] != unit) m.nodes.push_back(i);
        behind[k] = ahead[k] = 0;
      }
      const double change = costs_.change(labels_, m.nodes, unit).total() - costs_.launch(unit);
      if (is_less(change, 0)) moves.push_back(std::move(m));
    }
    keep(moves);
  }

  void move_nodes() {
    std::vector<Move> moves;
    for (int i = 0; i < costs_.nodes(); i++) {
      uint64_t units = 1;
      for (int b : costs_.before(i)) units |= uint64_t{1} << labels_[static_cast<size_t>(b)];
      for (int a : costs_.after(i)) units |= uint64_t{1} << labels_[static_cast<size_t>(a)];
      const int own = labels_[static_cast<size_t>(i)];
      double least = costs_.has_regions(own) ? costs_.launch(own) : 0;  // cost that a move may save
      int to = -1;
      for (int unit = 0; unit < costs_.units(); unit++) {
        if (unit == own || (units >> unit & 1) == 0) continue;
        const double change = costs_.change(labels_, std::span(&i, 1), unit).total();
        if (is_less(change, least)) {
          least = change;
          to = unit;
        }
      }
      if (to >= 0) moves.push_back({{i}, to});
    }
    // Moves of neighbors are tried one at a time, because together they may cancel each other.
    keep(moves);
  }

  const Costs& costs_;
  Labels& labels_;
  double total_;
  int left_ = 0;
};

}  // namespace

void improve_by_moves(const Costs& costs, Labels& labels) { Moves(costs, labels).run(); }

}  // namespace moka::plan
