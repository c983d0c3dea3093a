// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "view/graph.h"

namespace moka::cli {
namespace {

constexpr int32_t kMostLanes = 256;  ///< to each side; beyond, places are shared
constexpr int32_t kColumns = 8;      ///< of members that nothing connects

/// The columns of a grid, and up to which row each is taken.
class Lanes {
 public:
  /// The lane nearest to `wanted` that is free from `row` on.
  int32_t nearest(int32_t wanted, int32_t row, int32_t except = INT32_MIN) const {
    for (int32_t d = 0; d <= 2 * kMostLanes; ++d)
      for (const int32_t lane : {wanted + d, wanted - d})
        if (lane != except && std::abs(lane) <= kMostLanes && taken_[index(lane)] < row) return lane;
    return std::clamp(wanted, -kMostLanes, kMostLanes);
  }
  void take(int32_t lane, int32_t row) { taken_[index(lane)] = std::max(taken_[index(lane)], row); }

 private:
  static size_t index(int32_t lane) { return static_cast<size_t>(lane + kMostLanes); }
  std::vector<int32_t> taken_ = std::vector<int32_t>(2 * kMostLanes + 1, -1);
};

struct Links {
  std::vector<int32_t> in, out;  ///< indices of edges
};

class Layout {
 public:
  explicit Layout(Graph& graph) : graph_(graph), links_(graph.nodes.size()) {
    for (size_t i = 0; i < graph.edges.size(); ++i) {
      links_[static_cast<size_t>(graph.edges[i].from)].out.push_back(static_cast<int32_t>(i));
      links_[static_cast<size_t>(graph.edges[i].to)].in.push_back(static_cast<int32_t>(i));
    }
  }

  void group(const std::vector<int32_t>& members) {
    if (std::all_of(members.begin(), members.end(),
                    [&](int32_t id) { return links(id).in.empty() && links(id).out.empty(); }))
      return shelve(members);
    const std::vector<int32_t> order = sorted(members);
    const int32_t rows = rank(order);
    std::vector<std::vector<int32_t>> by_row(static_cast<size_t>(rows));
    for (const int32_t id : order) by_row[static_cast<size_t>(at(id).rank)].push_back(id);
    Lanes lanes;
    for (const auto& row : by_row) place(row, lanes);
  }

 private:
  GraphNode& at(int32_t id) { return graph_.nodes[static_cast<size_t>(id)]; }
  GraphEdge& edge(int32_t i) { return graph_.edges[static_cast<size_t>(i)]; }
  const Links& links(int32_t id) const { return links_[static_cast<size_t>(id)]; }

  /// In rows, in their own order: the trees of an ensemble.
  void shelve(const std::vector<int32_t>& members) {
    for (size_t i = 0; i < members.size(); ++i) {
      at(members[i]).rank = static_cast<int32_t>(i) / kColumns;
      at(members[i]).lane = static_cast<int32_t>(i) % kColumns;
    }
  }

  /// Producers in front of users. Ports and damaged models need not be in order; what is left of a cycle comes last.
  std::vector<int32_t> sorted(const std::vector<int32_t>& members) {
    std::vector<int32_t> out, waiting;
    for (const int32_t id : members) {
      at(id).rank = static_cast<int32_t>(links(id).in.size());
      if (at(id).rank == 0) out.push_back(id);
    }
    for (size_t i = 0; i < out.size(); ++i)
      for (const int32_t e : links(out[i]).out)
        if (--at(edge(e).to).rank == 0) out.push_back(edge(e).to);
    if (out.size() == members.size()) return out;
    for (const int32_t id : members)
      if (at(id).rank > 0) out.push_back(id);
    return out;
  }

  /// Rows by the longest path. What has no producer stands right above its first user. Returns the number of rows.
  int32_t rank(const std::vector<int32_t>& order) {
    for (const int32_t id : order) at(id).rank = -1;
    int32_t rows = 1;
    for (const int32_t id : order) {
      int32_t row = 0;
      for (const int32_t e : links(id).in) row = std::max(row, at(edge(e).from).rank + 1);
      at(id).rank = row;
      rows = std::max(rows, row + 1);
    }
    for (const int32_t id : order) {
      if (!links(id).in.empty() || links(id).out.empty() || at(id).kind == NodeKind::port) continue;
      int32_t first = INT32_MAX;
      for (const int32_t e : links(id).out) first = std::min(first, at(edge(e).to).rank);
      at(id).rank = std::max(0, first - 1);
    }
    return rows;
  }

  /// The column that a node would have below its producers: that of the nearest ones, in the middle of several.
  int32_t wanted(int32_t id) {
    int32_t nearest = -1, sum = 0, count = 0;
    for (const int32_t e : links(id).in) nearest = std::max(nearest, at(edge(e).from).rank);
    for (const int32_t e : links(id).in) {
      const GraphEdge& in = edge(e);
      if (at(in.from).rank != nearest) continue;
      sum += in.is_long ? in.lane : at(in.from).lane;
      ++count;
    }
    return count == 0 ? 0 : static_cast<int32_t>(std::lround(static_cast<double>(sum) / count));
  }

  void place(const std::vector<int32_t>& row, Lanes& lanes) {
    std::vector<std::pair<int32_t, int32_t>> wishes;
    for (const int32_t id : row) wishes.emplace_back(wanted(id), id);
    // The nodes in the middle choose first, so that a row spreads to both sides.
    std::stable_sort(wishes.begin(), wishes.end(),
                     [](const auto& a, const auto& b) { return std::abs(a.first) < std::abs(b.first); });
    for (const auto& [wish, id] : wishes) {
      GraphNode& node = at(id);
      node.lane = lanes.nearest(wish, node.rank);
      lanes.take(node.lane, node.rank);
    }
    for (const auto& [wish, id] : wishes) route(id, lanes);
  }

  /// A column for the edges that pass rows: one for all of them.
  void route(int32_t id, Lanes& lanes) {
    const GraphNode& node = at(id);
    int32_t last = node.rank + 1;
    bool has_next = false;
    for (const int32_t e : links(id).out) {
      const int32_t row = at(edge(e).to).rank;
      last = std::max(last, row);
      has_next |= row == node.rank + 1;
    }
    if (last == node.rank + 1) return;
    const int32_t lane = has_next ? lanes.nearest(node.lane, node.rank + 1, node.lane) : node.lane;
    lanes.take(lane, last - 1);
    for (const int32_t e : links(id).out) {
      if (at(edge(e).to).rank <= node.rank + 1) continue;
      edge(e).is_long = true;
      edge(e).lane = lane;
    }
  }

  Graph& graph_;
  std::vector<Links> links_;
};

}  // namespace

void lay_out(Graph& graph) {
  Layout layout(graph);
  for (const GraphNode& node : graph.nodes)
    if (!node.members.empty()) layout.group(node.members);
}

}  // namespace moka::cli
