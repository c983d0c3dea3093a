// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "text.h"
#include "view/graph.h"

namespace moka::cli {
namespace {

/// Nodes of all trees that a page shows; whole trees are left out beyond.
constexpr size_t kMostNodes = 20'000;

std::string leaf_text(const TreeNode& node) {
  std::string out;
  for (const auto& [dimension, value] : node.values)
    out += (out.empty() ? "" : ", ") + (node.values.size() > 1 ? std::to_string(dimension) + ": " : std::string()) +
           format_number(value);
  return out.empty() ? "nothing" : out;
}

class Adder {
 public:
  Adder(Graph& graph, int32_t ensemble) : graph_(graph), ensemble_(ensemble) {}

  void tree(uint64_t number, const std::vector<const TreeNode*>& nodes) {
    const int32_t group =
        graph_.add(ensemble_, {.kind = NodeKind::block, .name = "tree " + std::to_string(number), .type = "tree"});
    at(group).operations = static_cast<int32_t>(nodes.size());
    std::map<uint64_t, int32_t> ids;
    for (const TreeNode* n : nodes) {
      if (ids.contains(n->id)) continue;
      GraphNode node{.name = "node " + std::to_string(n->id), .type = n->test.empty() ? leaf_text(*n) : n->test};
      if (n->test.empty()) node.values = {{"adds", leaf_text(*n)}};
      ids[n->id] = graph_.add(group, std::move(node));
    }
    // A node has one parent, or the tree is damaged.
    std::set<int32_t> taken;
    for (const TreeNode* n : nodes) {
      if (n->test.empty()) continue;
      for (const auto& [child, answer] : {std::pair{n->on_true, "yes"}, std::pair{n->on_false, "no"}}) {
        const auto to = ids.find(child);
        if (to == ids.end() || to->second == ids[n->id] || !taken.insert(to->second).second) continue;
        at(to->second).name = std::string(answer) + ": " + at(to->second).name;
        graph_.edges.push_back({ids[n->id], to->second, 0, false, answer});
      }
    }
  }

 private:
  GraphNode& at(int32_t id) { return graph_.nodes[static_cast<size_t>(id)]; }

  Graph& graph_;
  const int32_t ensemble_;
};

}  // namespace

void add_trees(Graph& graph, int32_t ensemble, const std::vector<TreeNode>& nodes) {
  std::map<uint64_t, std::vector<const TreeNode*>> trees;
  for (const TreeNode& n : nodes) trees[n.tree].push_back(&n);
  Adder adder(graph, ensemble);
  size_t shown = 0, count = 0;
  for (const auto& [number, members] : trees) {
    if (count > 0 && count + members.size() > kMostNodes) break;
    adder.tree(number, members);
    count += members.size();
    shown++;
  }
  GraphNode& node = graph.nodes[static_cast<size_t>(ensemble)];
  node.operations = static_cast<int32_t>(count);
  if (shown < trees.size()) node.values.emplace_back("shown trees", std::to_string(shown));
}

}  // namespace moka::cli
