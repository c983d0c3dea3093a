// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moka/inspection.h"
#include "moka/model_structure.h"

/// The graph that the viewer draws: operations in groups that open and close.
///
///   graph.cpp     a structure as a graph
///   trees.cpp     the trees of an ensemble
///   repeats.cpp   equal blocks, one behind the other, become groups
///   scopes.cpp    operations whose names share a scope become groups
///   edges.cpp     uses of values as edges inside groups and through their borders
///   layout.cpp    the places of each group's members
///   graph_json.cpp  what the page reads
namespace moka::cli {

enum class NodeKind : uint8_t {
  operation,  ///< an operation or layer; with children if it has blocks
  input,
  output,
  model,   ///< a stage of a pipeline
  block,   ///< a block of an operation, or one of several equal blocks
  repeat,  ///< equal blocks, one behind the other
  scope,   ///< operations, one behind the other, whose names share a scope
  port,    ///< where values enter or leave a block, a repeat or a scope
};

struct GraphNode {
  NodeKind kind = NodeKind::operation;
  std::string name, type;
  int32_t parent = -1;
  int32_t rank = 0, lane = 0;    ///< row and column in the grid of the parent's members
  int32_t operations = 0;        ///< inside, for a group
  std::vector<int32_t> members;  ///< of a group, in the order of the source
  std::vector<std::pair<std::string, std::vector<std::string>>> inputs;
  std::vector<std::pair<std::string, std::string>> outputs, values;
  std::vector<int32_t> weights;  ///< indices in Graph::weights
};

/// A use of a value: its producer, its user, and its name.
struct GraphUse {
  int32_t from = 0, to = 0;
  std::string value;
};

/// An edge between members of one group.
struct GraphEdge {
  int32_t from = 0, to = 0;
  int32_t lane = 0;      ///< the column of its vertical part, when it passes other rows
  bool is_long = false;  ///< it ends more than one row below its start
  std::string value;     ///< name of the value
};

/// A weight and the model of a pipeline that holds it.
struct GraphWeight {
  const ModelStructure::Weight* weight = nullptr;
  std::vector<size_t> models;
  size_t index = 0;  ///< in that model's weights
};

/// An operation that is a tree ensemble, and the indices that lead to it in pipelines.
struct GraphEnsemble {
  int32_t node = 0;
  std::vector<size_t> models;
};

struct Graph {
  std::string name;
  std::vector<GraphNode> nodes;  ///< the first one is the group of all
  std::vector<GraphEdge> edges;
  std::vector<GraphWeight> weights;
  std::vector<GraphEnsemble> ensembles;

  /// The new member of a group.
  int32_t add(int32_t group, GraphNode node) {
    const auto id = static_cast<int32_t>(nodes.size());
    node.parent = group;
    nodes.push_back(std::move(node));
    nodes[static_cast<size_t>(group)].members.push_back(id);
    return id;
  }
};

/// The nodes of the tree ensemble that the indices lead to.
using TreeReader = std::function<std::vector<TreeNode>(const std::vector<size_t>& models)>;

/// The graph of a function, or of a model without functions (empty `function`), laid out. Refers to `structure`.
/// Ensembles have their trees in them if `trees` reads them.
Graph graph_of(const ModelStructure& structure, const std::string& function, const TreeReader& trees = nullptr);

/// Adds a group for each tree, with its nodes, to node `ensemble`; no more trees than a page shows.
void add_trees(Graph& graph, int32_t ensemble, const std::vector<TreeNode>& nodes);

/// The scopes in the name of an operation: "encoder/layer.0/query" is in "encoder", "encoder/layer" and
/// "encoder/layer.0".
struct Scopes {
  Scopes() = default;
  explicit Scopes(std::string_view text);

  std::string name;          ///< empty without scopes
  std::vector<size_t> ends;  ///< of each scope in the name, from the outermost
};

/// The number of scopes, from the outermost, that are the same.
size_t shared_scopes(const Scopes& a, const Scopes& b);

/// Replaces the edges by those of the uses. Borders of groups that have ports get them.
void make_edges(Graph& graph, const std::vector<GraphUse>& uses);
/// Whether `node` is a group that was recognized, not one that the model contains.
bool has_ports(const GraphNode& node);

/// In every group, puts members that repeat into groups of their own. Takes the edges between operations.
void group_repeats(Graph& graph);
/// In every group, puts neighbors whose names share a scope into groups of their own.
void group_scopes(Graph& graph);
/// Sets rank and lane of all nodes and the lanes of edges, in time linear in both.
void lay_out(Graph& graph);

}  // namespace moka::cli
