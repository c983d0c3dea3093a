// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "view/graph.h"

namespace moka::cli {
namespace {

class Edges {
 public:
  explicit Edges(Graph& graph) : graph_(graph) {}

  void add(const GraphUse& use) {
    int32_t group = at(use.to).parent;
    int32_t to = use.to, from = member_of(use.from, group);
    // Through the borders of blocks up to the group that also holds the producer.
    while (from < 0) {
      if (has_ports(at(group))) edge(port(group, true), to, use.value);
      to = group;
      group = at(group).parent;
      from = member_of(use.from, group);
    }
    edge(from, to, use.value);
    for (int32_t inner = use.from; inner != from; inner = at(inner).parent) {
      const int32_t around = at(inner).parent;
      if (has_ports(at(around))) edge(inner, port(around, false), use.value);
    }
  }

 private:
  GraphNode& at(int32_t id) { return graph_.nodes[static_cast<size_t>(id)]; }

  /// The ancestor of `id` that is a member of `group`; -1 when it is outside.
  int32_t member_of(int32_t id, int32_t group) {
    while (id >= 0 && at(id).parent != group) id = at(id).parent;
    return id;
  }

  int32_t port(int32_t group, bool in) {
    int32_t& id = ports_[{group, in}];
    if (id != 0) return id;
    id = static_cast<int32_t>(graph_.nodes.size());
    graph_.nodes.push_back({.kind = NodeKind::port, .name = in ? "in" : "out", .parent = group});
    at(group).members.push_back(id);
    return id;
  }

  void edge(int32_t from, int32_t to, const std::string& value) {
    if (from != to && made_.emplace(from, to).second) graph_.edges.push_back({from, to, 0, false, value});
  }

  Graph& graph_;
  std::set<std::pair<int32_t, int32_t>> made_;
  std::map<std::pair<int32_t, bool>, int32_t> ports_;
};

}  // namespace

bool has_ports(const GraphNode& node) {
  return node.kind == NodeKind::repeat || node.kind == NodeKind::scope ||
         (node.kind == NodeKind::block && node.type == "block");
}

void make_edges(Graph& graph, const std::vector<GraphUse>& uses) {
  graph.edges.clear();
  Edges edges(graph);
  for (const GraphUse& use : uses) edges.add(use);
}

}  // namespace moka::cli
